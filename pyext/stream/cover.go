// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package stream

/*
#include "stream.h"
*/
import "C"

import "github.com/cudago/cudago/cuda"

// cudagoCoverEvent returns an event for the cover of a stream, or 0. It runs
// without the GIL, since it may create one.
//
//export cudagoCoverEvent
func cudagoCoverEvent(id C.uint64_t) C.uintptr_t {
	l, err := Lines.Get(uint64(id))
	if err != nil {
		return 0
	}
	e, err := l.Stream().Context().TakeEvent(true)
	if err != nil {
		return 0
	}
	return ready(e)
}

// ready has an event lie in the cover of a stream.
func ready(e *cuda.Event) C.uintptr_t {
	e.Context().Lend(e)
	return lent(e)
}

// cudagoCoverOver takes back the event of a cover, which the line keeps as a mark
// if it stands behind work.
//
//export cudagoCoverOver
func cudagoCoverOver(id C.uint64_t, handle C.uintptr_t, covered C.uint64_t) {
	e := regained(handle)
	l, err := Lines.Get(uint64(id))
	if err != nil {
		e.Context().PutEvent(e)
		return
	}
	l.Behind(uint64(covered), e)
}

// latest takes the cover away: the event, and up to where it stands behind the
// work in the stream. Nil: there is none, or a thread has it in its hands. The next
// work finds another one, if an event is idle, and needs no Go.
func (t *Timeline) latest() (pos uint64, e *cuda.Event) {
	c := C.cudago_cover_take_recorded(t.block)
	if c.event == 0 {
		return 0, nil
	}
	e = regained(c.event)
	if next, err := e.Context().TakeEvent(false); err == nil && next != nil {
		t.putCover(next)
	}
	return uint64(c.covered), e
}

func (t *Timeline) putCover(e *cuda.Event) {
	if handle := ready(e); C.cudago_cover_put(t.block, handle) == 0 {
		e = regained(handle)
		e.Context().PutEvent(e)
	}
}

// dropCover gives the cover of a stream back whose work has ended.
func (t *Timeline) dropCover() {
	if c := C.cudago_cover_take(t.block); c.event != 0 {
		e := regained(c.event)
		e.Context().PutEvent(e)
	}
}

func regained(handle C.uintptr_t) *cuda.Event {
	e := takeCover(handle)
	e.Context().Regain(e)
	return e
}
