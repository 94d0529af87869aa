// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"sync"
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// contextWaits are the waits for contexts under way. cuCtxSynchronize
// invalidates the captures that are open when it is called, in any mode; those
// that begin while it already waits are safe. So a wait and a beginning each
// announce themselves first, and look for the other then: the wait is refused
// while a capture is open, and the beginning waits until no wait is young.
type contextWaits struct {
	mu    sync.Mutex
	since map[*time.Time]bool // guarded by mu

	// inside is shared by the waits while they are in the driver. Taken before any
	// other lock that is held across a driver call.
	inside sync.RWMutex
}

// apart runs a call that adds or removes memory of pools, of those that NVIDIA's
// driver, 580.159, crashes in while a thread is in cuCtxSynchronize: it reads
// freed host memory in one of the two. They are cuMemPoolDestroy,
// cuMemPoolImportFromShareableHandle, cuMemPoolImportPointer, and cuMemFree of what
// that has imported. It waits until no wait of ours is there, and delays those that
// come meanwhile. Not with the GIL.
func (w *contextWaits) apart(call func()) {
	w.inside.Lock()
	defer w.inside.Unlock()
	call()
}

// tryApart is apart for a release, which returns notYet instead of waiting.
func (w *contextWaits) tryApart(call func() driver.CUresult) driver.CUresult {
	if !w.inside.TryLock() {
		return notYet
	}
	defer w.inside.Unlock()
	return call()
}

// synchronize calls cuCtxSynchronize.
//
// Preconditions: c is current.
func (c *Context) synchronize() driver.CUresult {
	c.drv.waits.inside.RLock()
	defer c.drv.waits.inside.RUnlock()
	return c.drv.api.CuCtxSynchronize()
}

// entered is the age from which a wait certainly is inside the driver. What it
// waits for may come only after the capture, so no beginning waits longer.
const entered = 100 * time.Millisecond

func (w *contextWaits) begin() (end func()) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since == nil {
		w.since = make(map[*time.Time]bool)
	}
	w.since[&now] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.since, &now)
	}
}

func (w *contextWaits) young() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for since := range w.since {
		if time.Since(*since) < entered {
			return true
		}
	}
	return false
}

// ContextWaited reports whether a thread has just begun to wait for a context:
// a capture that began now would wait for some time.
func (d *Driver) ContextWaited() bool { return d.waits.young() }

// countCapture counts a capture that is about to begin.
func (d *Driver) countCapture() {
	for {
		d.captures.Add(1)
		if !d.waits.young() {
			return
		}
		d.captures.Add(-1)
		time.Sleep(50 * time.Microsecond)
	}
}

// Synchronize blocks until all work of the context has completed. It calls
// cuCtxSynchronize, unless a capture is open that [Stream.BeginCapture] began.
//
// Errors: [ErrorStreamCaptureUnsupported] then.
func (c *Context) Synchronize() error {
	defer c.drv.waits.begin()()
	if c.drv.Capturing() {
		const why = "a stream is capturing, and the call would invalidate the capture: wait for the streams that do not capture"
		return c.fail("cuCtxSynchronize", driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, why)
	}
	leave, err := c.Enter()
	if err != nil {
		return err
	}
	defer leave()
	return c.waited("cuCtxSynchronize", c.synchronize())
}
