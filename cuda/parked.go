// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// parkedStreams are closed streams whose handles others have been given. They
// are never destroyed, because NVIDIA's driver crashes on the handle of a
// destroyed stream (580.159), and nobody can know who still has one. NewStream
// gives them out again, so there are never more of them than such streams were
// open at the same time. They end with the context.
type parkedStreams struct {
	mu   sync.Mutex
	list []parked // guarded by mu
}

type parked struct {
	h    driver.CUstream
	like streamLike
}

// streamLike is what a stream was created with.
type streamLike struct {
	flags    uint32
	priority int32
	green    *GreenContext // nil for most
}

func (p *parkedStreams) put(s *Stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, parked{s.h, s.like})
}

// take removes and returns a stream that was created in the same way and that is
// idle according to the driver. Others may still use it.
func (p *parkedStreams) take(like streamLike, isIdle func(driver.CUstream) bool) (driver.CUstream, bool) {
	p.mu.Lock()
	var fit []driver.CUstream
	for _, k := range p.list {
		if k.like == like {
			fit = append(fit, k.h)
		}
	}
	p.mu.Unlock()
	for _, h := range fit {
		if isIdle(h) && p.remove(h) {
			return h, true
		}
	}
	return 0, false
}

// remove reports false if another thread has taken h meanwhile.
func (p *parkedStreams) remove(h driver.CUstream) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.list, func(k parked) bool { return k.h == h })
	if at < 0 {
		return false
	}
	p.list = slices.Delete(p.list, at, at+1)
	return true
}

// isIdle reports whether a stream neither captures nor has work.
//
// Preconditions: c is current.
func (c *Context) isIdle(h driver.CUstream) bool {
	status, r := c.drv.api.CuStreamIsCapturing(h)
	if r != driver.CUDA_SUCCESS || status != driver.CU_STREAM_CAPTURE_STATUS_NONE {
		return false
	}
	defer c.drv.relax()() // a query is refused while a thread captures globally
	return c.drv.api.CuStreamQuery(h) == driver.CUDA_SUCCESS
}

// Expose says that others are given the handle. Close then does not destroy the
// stream: see [Context.NewStream].
func (s *Stream) Expose() { s.exposed.Store(true) }

// IsExposed reports whether others may have the handle: since Expose, or since
// an earlier life of the stream.
func (s *Stream) IsExposed() bool { return s.exposed.Load() }
