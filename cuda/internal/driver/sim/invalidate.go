// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/cudago/cudago/cuda/internal/driver"

// This file holds the rules by which calls that are not part of a capture invalidate
// it. Which calls they are was measured on an H200 with a 13.x driver: event
// and stream queries and waits, instantiating and destroying executables, every
// kind of allocation and free, unloading modules, asking a pool its attributes
// or accesses. Setting them and trimming are refused too; that was not measured.

// unsafeCall begins each call that is potentially unsafe during a capture. It
// refuses the call and invalidates the captures that it would endanger.
func (d *simulator) unsafeCall() driver.CUresult {
	if d.capturing.Load() == 0 {
		return driver.CUDA_SUCCESS
	}
	tid, _, mode := d.threadState()
	if mode == driver.CU_STREAM_CAPTURE_MODE_RELAXED {
		return driver.CUDA_SUCCESS
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	r := driver.CUDA_SUCCESS
	for c := range d.captures {
		own := c.tid == tid && c.mode != driver.CU_STREAM_CAPTURE_MODE_RELAXED
		global := c.mode == driver.CU_STREAM_CAPTURE_MODE_GLOBAL && mode == driver.CU_STREAM_CAPTURE_MODE_GLOBAL
		if own || global {
			c.invalidated = true
			r = driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
		}
	}
	return r
}

// outsideCaptures begins calls on memory pools.
func (d *simulator) outsideCaptures() driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	return d.unsafeCall()
}

// invalidate invalidates a capture, unless it has ended.
func (d *simulator) invalidate(c *capture) (open bool) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	if c.ended {
		return false
	}
	c.invalidated = true
	return true
}

// invalidateAll is what waiting for a whole context does, in any mode: it conflicts
// with each capture in it.
func (d *simulator) invalidateAll(ctx *context) driver.CUresult {
	if d.capturing.Load() == 0 {
		return driver.CUDA_SUCCESS
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	r := driver.CUDA_SUCCESS
	for c := range d.captures {
		for s := range c.streams {
			if s.ctx == ctx {
				c.invalidated = true
				r = driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
			}
		}
	}
	return r
}

// hostWaits begins calls by which the host learns the progress of a stream: a
// capturing stream makes none.
func (d *simulator) hostWaits(s *stream) driver.CUresult {
	if d.capturing.Load() == 0 {
		return driver.CUDA_SUCCESS
	}
	if r := d.refuseCapturing(s); r != driver.CUDA_SUCCESS {
		return r
	}
	return d.unsafeCall()
}

// refuseCapturing invalidates the captures that a call concerns that cannot be part
// of one: the stream's, or those that the legacy default stream would depend on.
func (d *simulator) refuseCapturing(s *stream) driver.CUresult {
	if s.capture.Load() == nil {
		return d.implicitCapture(s)
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	c := s.capture.Load()
	switch {
	case c == nil: // another thread has ended it meanwhile
		return driver.CUDA_SUCCESS
	case c.invalidated:
		return driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
	}
	c.invalidated = true
	return driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
}

// implicitCapture refuses work in the legacy default stream while a blocking
// stream captures: it would have to wait for work that will not run.
func (d *simulator) implicitCapture(s *stream) driver.CUresult {
	if !s.isLegacy || d.capturing.Load() == 0 {
		return driver.CUDA_SUCCESS
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	list := d.implicitCaptures(s)
	for _, c := range list {
		c.invalidated = true
	}
	if len(list) > 0 {
		return driver.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
	}
	return driver.CUDA_SUCCESS
}

// implicitCaptures lists the captures that work in legacy would depend on.
//
// Preconditions: d.graphMu must be locked.
func (d *simulator) implicitCaptures(legacy *stream) []*capture {
	var list []*capture
	for c := range d.captures {
		for s := range c.streams {
			if s.ctx == legacy.ctx && s.blocking() {
				list = append(list, c)
				break
			}
		}
	}
	return list
}

// abandonStream takes a stream that is being destroyed out of its capture. A
// capture without its origin is over: it could not be ended.
func (d *simulator) abandonStream(s *stream) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	c := s.capture.Load()
	if c == nil {
		return
	}
	c.invalidated = true
	if s == c.origin {
		c.leave(d)
		d.destroyGraph(c.graph)
		return
	}
	s.capture.Store(nil)
	delete(c.streams, s)
}

// abandonCaptures ends the captures of a context that is being destroyed.
func (d *simulator) abandonCaptures(ctx *context) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	for c := range d.captures {
		if c.origin.ctx == ctx {
			c.invalidated = true
			c.leave(d)
			d.destroyGraph(c.graph)
		}
	}
}
