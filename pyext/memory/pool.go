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

// record records an event behind the frees of s. Where none can be, their memory
// comes back with the next wait of anybody.
func (p *poolEnd) record(s *cuda.Stream, create bool, call func(*cuda.Stream, *cuda.Event) (bool, error)) {
	e, err := s.Context().TakeEvent(create)
	if err != nil || e == nil {
		return
	}
	if recorded, err := call(s, e); err == nil && recorded {
		p.events = append(p.events, e)
	} else {
		s.Context().PutEvent(e)
	}
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
		p.record(p.streams[0], true, (*cuda.Stream).RecordAside)
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
// freed on. In those of ours whose handle others have, the reaper may record nothing,
// since another library's capture could begin there meanwhile: this thread, which
// uses them, does. The handles of other libraries' streams may be stale.
//
//export cudagoPoolRelease
func cudagoPoolRelease(id C.uint64_t, freedOn *C.uint64_t, n C.int) {
	r, ok := Resources.Take(uint64(id))
	if !ok {
		return
	}
	end := &poolEnd{resource: r}
	for _, id := range unsafe.Slice(freedOn, int(n)) {
		l, err := stream.Lines.Get(uint64(id))
		if err != nil {
			continue
		}
		switch s := l.Stream(); {
		case s.IsDefault():
			end.streams = append(end.streams, s.OnAnyThread())
		case s.IsForeign():
		case s.IsExposed():
			border.Callbacks.Alone(func() { end.record(s, false, (*cuda.Stream).RecordUncaptured) })
		default:
			end.streams = append(end.streams, s)
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
