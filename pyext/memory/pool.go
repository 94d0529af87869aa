// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

// A poolEnd closes a pool after what was in some streams, as an item of the
// reaper. Without that its memory would come back later: NVIDIA's driver returns
// the memory of a closed pool once somebody has waited for the frees, and not
// merely asked.
type poolEnd struct {
	resource resource
	streams  []*cuda.Stream // still without an event
	events   []*cuda.Event  // behind the frees
}

// Step implements [finalize.Item].
func (p *poolEnd) Step() (done bool, err error) {
	border.Driver.Load().Relaxed(func() {
		border.Callbacks.Alone(func() { done, err = p.step() })
	})
	return done, err
}

func (p *poolEnd) step() (done bool, err error) {
	for ; len(p.streams) > 0; p.streams = p.streams[1:] {
		s := p.streams[0]
		e, err := s.Context().TakeEvent(true)
		if err != nil {
			continue // then it is somebody else's wait
		}
		if recorded, err := s.RecordAside(e); err == nil && recorded {
			p.events = append(p.events, e)
		} else {
			s.Context().PutEvent(e)
		}
	}
	for ; len(p.events) > 0; p.events = p.events[1:] {
		e := p.events[0]
		ended, err := e.QueryAside()
		if err == nil && !ended {
			return false, nil
		}
		if ended {
			_ = e.ObserveAside() // a fault of the device is told elsewhere
		}
		e.Context().PutEvent(e)
	}
	return true, p.resource.Close()
}

// cudagoPoolRelease leaves a pool to the reaper, with the streams that its memory was
// freed on. Those that others have are left out: an event recorded there could meet
// a capture that begins.
//
//export cudagoPoolRelease
func cudagoPoolRelease(id C.uint64_t, freedOn *C.uint64_t, n C.int) {
	r, ok := Resources.Take(uint64(id))
	if !ok {
		return
	}
	end := &poolEnd{resource: r}
	for _, id := range unsafe.Slice(freedOn, int(n)) {
		if l, err := stream.Lines.Get(uint64(id)); err == nil {
			if s := l.Stream(); s.IsDefault() || !s.IsExposed() && !s.IsForeign() {
				end.streams = append(end.streams, s.OnAnyThread())
			}
		}
	}
	border.Reaper.Add(end)
}

// cudagoStreamsOpen moves those of n streams that are open, or have work, to the
// front, and returns how many these are.
//
//export cudagoStreamsOpen
func cudagoStreamsOpen(streams *C.uint64_t, n C.int) (open C.int) {
	list := unsafe.Slice(streams, int(n))
	for _, s := range list {
		if _, err := stream.Lines.Get(uint64(s)); err == nil {
			list[open] = s
			open++
		}
	}
	return open
}
