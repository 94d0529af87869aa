// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"runtime"
	"syscall"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// thread is what CUDA keeps for an OS thread. A thread in its initial state
// has no entry. Guarded by simulator.threadsMu.
type thread struct {
	stack []*context // the last one is current
	mode  driver.CUstreamCaptureMode
	// inCallback says that the thread runs a host function, which may not call
	// the driver.
	inCallback bool
}

// onThread changes the calling thread's state.
func (d *simulator) onThread(change func(t *thread)) {
	tid := syscall.Gettid()
	d.threadsMu.Lock()
	defer d.threadsMu.Unlock()
	t := d.threads[tid]
	if t == nil {
		t = &thread{}
		d.threads[tid] = t
	}
	change(t)
	if len(t.stack) == 0 && t.mode == driver.CU_STREAM_CAPTURE_MODE_GLOBAL && !t.inCallback {
		delete(d.threads, tid)
	}
}

// threadState returns the calling thread's id and a copy of its state, whose
// stack is cut down to the current context.
func (d *simulator) threadState() (tid int, current *context, mode driver.CUstreamCaptureMode) {
	tid = syscall.Gettid()
	d.threadsMu.RLock()
	defer d.threadsMu.RUnlock()
	t := d.threads[tid]
	if t == nil {
		return tid, nil, driver.CU_STREAM_CAPTURE_MODE_GLOBAL
	}
	if n := len(t.stack); n > 0 {
		current = t.stack[n-1]
	}
	return tid, current, t.mode
}

// current returns the calling thread's context, if it can be used.
func (d *simulator) current() (*context, driver.CUresult) {
	if !d.initialized.Load() {
		return nil, driver.CUDA_ERROR_NOT_INITIALIZED
	}
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	_, c, _ := d.threadState()
	if c == nil {
		return nil, driver.CUDA_ERROR_INVALID_CONTEXT
	}
	return c, c.result()
}

// permitted refuses calls made by a host function. CUDA may refuse them; here
// that keeps a stream from waiting for itself.
func (d *simulator) permitted() driver.CUresult {
	if d.callbacks.Load() == 0 {
		return driver.CUDA_SUCCESS
	}
	d.threadsMu.RLock()
	defer d.threadsMu.RUnlock()
	if t := d.threads[syscall.Gettid()]; t != nil && t.inCallback {
		return driver.CUDA_ERROR_NOT_PERMITTED
	}
	return driver.CUDA_SUCCESS
}

// runHost calls a host function on this goroutine's thread, once there is one of
// those that may be held for that.
func (d *simulator) runHost(fn driver.CUhostFn, userData uintptr) {
	if d.hostCalls != nil {
		d.hostCalls <- struct{}{}
		defer func() { <-d.hostCalls }()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d.callbacks.Add(1)
	defer d.callbacks.Add(-1)
	d.onThread(func(t *thread) { t.inCallback = true })
	defer d.onThread(func(t *thread) { t.inCallback = false })
	d.callHost(fn, userData)
}

func (d *simulator) CuThreadExchangeStreamCaptureMode(mode driver.CUstreamCaptureMode) (driver.CUstreamCaptureMode, driver.CUresult) {
	if mode < driver.CU_STREAM_CAPTURE_MODE_GLOBAL || mode > driver.CU_STREAM_CAPTURE_MODE_RELAXED {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	d.onThread(func(t *thread) { t.mode, mode = mode, t.mode })
	return mode, driver.CUDA_SUCCESS
}
