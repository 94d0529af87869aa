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
//
// And some calls are made in the gaps between waits only, see apart.
type contextWaits struct {
	mu     sync.Mutex
	since  map[*time.Time]bool // guarded by mu; the waits, by when they began
	gap    bool                // guarded by mu; a call is made apart from them
	wanted time.Time           // guarded by mu; until then new waits let a gap come
	turn   time.Time           // guarded by mu; until then no gap is wanted
	// patience is how long the last gap was wanted, if it did not come. Guarded by mu.
	patience time.Duration
}

const (
	// leastPatience is how long new waits let a gap come, and then twice as long each
	// time that none came. One that is under way may wait for what follows a new one,
	// so that is never for good, and each time new waits then have as long.
	leastPatience = 20 * time.Millisecond
	mostPatience  = time.Second
	// waitsTurn is how long waits may begin after a gap, whoever wants another one.
	waitsTurn = time.Millisecond
	// waitsPoll lies between two looks at the other side.
	waitsPoll = 50 * time.Microsecond
)

// apart runs a call that adds or removes memory of pools, of those that NVIDIA's
// driver, 580.159, crashes in while a thread is in cuCtxSynchronize: it reads
// freed host memory in one of the two. They are cuMemPoolDestroy,
// cuMemPoolImportFromShareableHandle, cuMemPoolImportPointer, and cuMemFree of what
// that has imported. It waits until no wait of ours is there, and delays those that
// come meanwhile. Not with the GIL.
func (w *contextWaits) apart(call func()) {
	for !w.beginGap() {
		time.Sleep(waitsPoll)
	}
	defer w.endGap()
	call()
}

// apartSoon is apart, unless there is no gap for some time.
func (w *contextWaits) apartSoon(call func()) {
	for end := time.Now().Add(time.Second); !w.beginGap(); time.Sleep(waitsPoll) {
		if time.Now().After(end) {
			return
		}
	}
	defer w.endGap()
	call()
}

// tryApart is apart for a release, which returns notYet instead of waiting. New
// waits delay themselves until it is tried again, or lost patience.
func (w *contextWaits) tryApart(call func() driver.CUresult) driver.CUresult {
	if !w.beginGap() {
		return notYet
	}
	defer w.endGap()
	return call()
}

func (w *contextWaits) beginGap() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gap {
		return false
	}
	if len(w.since) > 0 {
		if now := time.Now(); now.After(w.turn) {
			w.patience = min(max(2*w.patience, leastPatience), mostPatience)
			w.wanted = now.Add(w.patience)
			w.turn = w.wanted.Add(w.patience)
		}
		return false
	}
	w.gap = true
	return true
}

func (w *contextWaits) endGap() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gap, w.wanted, w.patience = false, time.Time{}, 0
	w.turn = time.Now().Add(waitsTurn)
}

// begin blocks while a gap is there or wanted, and announces a wait then.
func (w *contextWaits) begin() (end func()) {
	for {
		if since := w.tryBegin(); since != nil {
			return func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				delete(w.since, since)
			}
		}
		time.Sleep(waitsPoll)
	}
}

// tryBegin returns nil if the wait may not begin now.
func (w *contextWaits) tryBegin() (since *time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now() // with the lock: the wait is young from when it is seen
	if w.gap || now.Before(w.wanted) {
		return nil
	}
	if w.since == nil {
		w.since = make(map[*time.Time]bool)
	}
	w.since[&now] = true
	return &now
}

// entered is the age from which a wait certainly is inside the driver. What it
// waits for may come only after the capture, so no beginning waits longer.
const entered = 100 * time.Millisecond

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
		time.Sleep(waitsPoll)
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
	return c.waited("cuCtxSynchronize", c.drv.api.CuCtxSynchronize())
}
