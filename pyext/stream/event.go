// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package stream

/*
#include "stream.h"
*/
import "C"

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/cudago/cudago/cuda"

	"github.com/cudago/cudago/pyext/border"
)

// Events are the open events.
var Events = border.NewTable[*cuda.Event]("event")

func init() {
	border.WaitEvent(func(id uint64) (func() (bool, error), func() error, error) {
		e, err := Events.Get(id)
		if err != nil {
			return nil, nil, err
		}
		return border.RelaxedQuery(e.Query), border.Relaxed(e.Synchronize), nil
	})
}

//export cudagoEventNew
func cudagoEventNew(ordinal C.int32_t, timing, blocking, shared C.int, handle *C.uintptr_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		e, err := c.NewEvent(cuda.EventOptions{Timing: timing != 0, BlockingSync: blocking != 0, Shareable: shared != 0})
		if err != nil {
			return err
		}
		*handle = C.uintptr_t(e.Handle())
		id = C.uint64_t(Events.Put(e))
		return nil
	})
	return id
}

// forGood are the events of cudagoEventForGood.
var forGood struct {
	mu   sync.Mutex
	list []*cuda.Event // guarded by mu
}

// keepForGood also lets go of the events that resets have destroyed.
func keepForGood(e *cuda.Event) {
	forGood.mu.Lock()
	defer forGood.mu.Unlock()
	forGood.list = append(slices.DeleteFunc(forGood.list, func(was *cuda.Event) bool {
		lost := was.Context().IsLost()
		if lost {
			border.Reaper.Add(border.Once(was.Close))
		}
		return lost
	}), e)
}

// cudagoEventForGood makes an event that lives as long as the process, or until
// the device is reset, and so does not count as a live object of the user's.
//
//export cudagoEventForGood
func cudagoEventForGood(ordinal C.int32_t, st *C.cudago_status) (handle C.uintptr_t) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		e, err := c.NewEvent(cuda.EventOptions{})
		if err == nil {
			keepForGood(e)
			handle = C.uintptr_t(e.Handle())
		}
		return err
	})
	return handle
}

// cudagoEventRelease leaves the event to the reaper: cuEventDestroy can wait for
// another thread's full launch queue.
//
//export cudagoEventRelease
func cudagoEventRelease(id C.uint64_t) {
	if e, ok := Events.Take(uint64(id)); ok {
		border.Reaper.Add(border.Once(e.Close))
	}
}

// cudagoEventRecord records an event in a stream, and returns 1 if that is
// capturing. It waits for a thread that is stuck in a graph launch, so it is
// called with the GIL only while no Python callback exists.
//
//export cudagoEventRecord
func cudagoEventRecord(event, stream C.uint64_t, st *C.cudago_status) (captured C.int) {
	guard(st, func() error {
		e, err := Events.Get(uint64(event))
		if err != nil {
			return err
		}
		s, err := Streams.Get(uint64(stream))
		if err != nil {
			return err
		}
		is, err := s.RecordCaptured(e)
		captured = border.Bool[C.int](is)
		return err
	})
	return captured
}

// cudagoRecordLock keeps captures from beginning and ending: see record.c.
//
//export cudagoRecordLock
func cudagoRecordLock() { border.Driver.Load().LockRecord() }

//export cudagoRecordUnlock
func cudagoRecordUnlock() { border.Driver.Load().UnlockRecord() }

// helds are the ends of uses of events, by launches that record them.
var helds = border.NewTable[func()]("event of a launch")

// cudagoEventHold keeps an event from being destroyed, even if it is closed,
// until cudagoEventLetGo. It returns 0 if it is closed already.
//
//export cudagoEventHold
func cudagoEventHold(event C.uint64_t) C.uint64_t {
	e, err := Events.Get(uint64(event))
	if err != nil {
		return 0
	}
	_, done, err := e.Use()
	if err != nil {
		return 0
	}
	return C.uint64_t(helds.Put(done))
}

//export cudagoEventLetGo
func cudagoEventLetGo(hold C.uint64_t) {
	if done, ok := helds.Take(uint64(hold)); ok {
		border.Reaper.Add(border.Once(func() error { done(); return nil }))
	}
}

// cudagoStreamWaitEvent waits as cudagoEventRecord does. It returns 1 if nothing was
// done, because the stream might join a capture.
//
//export cudagoStreamWaitEvent
func cudagoStreamWaitEvent(stream, event C.uint64_t, st *C.cudago_status) (joins C.int) {
	return wait(stream, event, 0, st, (*cuda.Stream).WaitUnlessJoining, (*cuda.Stream).WaitHandleUnlessJoining)
}

// cudagoStreamWaitHandle is cudagoStreamWaitEvent for an event of another library.
//
//export cudagoStreamWaitHandle
func cudagoStreamWaitHandle(stream C.uint64_t, handle C.uintptr_t, st *C.cudago_status) (joins C.int) {
	return wait(stream, 0, handle, st, (*cuda.Stream).WaitUnlessJoining, (*cuda.Stream).WaitHandleUnlessJoining)
}

// cudagoStreamTryJoin makes a wait that may make the stream join a capture, for an
// event, or for another library's by its handle. It waits for no other thread's record:
// 1 if nothing was done, because there is one.
//
//export cudagoStreamTryJoin
func cudagoStreamTryJoin(stream, event C.uint64_t, handle C.uintptr_t, st *C.cudago_status) (busy C.int) {
	return wait(stream, event, handle, st, (*cuda.Stream).TryWait, (*cuda.Stream).TryWaitHandle)
}

// cudagoStreamJoin is cudagoStreamTryJoin without the GIL, which waits.
//
//export cudagoStreamJoin
func cudagoStreamJoin(stream, event C.uint64_t, handle C.uintptr_t, st *C.cudago_status) {
	wait(stream, event, handle, st,
		func(s *cuda.Stream, e *cuda.Event) (bool, error) { return true, s.Wait(e) },
		func(s *cuda.Stream, handle uintptr) (bool, error) { return true, s.WaitHandle(handle) })
}

// wait returns 1 if nothing was done.
func wait(stream, event C.uint64_t, handle C.uintptr_t, st *C.cudago_status,
	one func(*cuda.Stream, *cuda.Event) (bool, error), other func(*cuda.Stream, uintptr) (bool, error)) (nothing C.int) {
	guard(st, func() error {
		s, err := Streams.Get(uint64(stream))
		if err != nil {
			return err
		}
		var waits bool
		if event == 0 {
			waits, err = other(s, uintptr(handle))
		} else {
			var e *cuda.Event
			if e, err = Events.Get(uint64(event)); err != nil {
				return err
			}
			waits, err = one(s, e)
		}
		nothing = border.Bool[C.int](!waits && err == nil)
		return err
	})
	return nothing
}

//export cudagoEventDone
func cudagoEventDone(id C.uint64_t, st *C.cudago_status) (done C.int) {
	guard(st, func() error {
		e, err := Events.Get(uint64(id))
		if err != nil {
			return err
		}
		over, err := border.RelaxedQuery(e.Query)()
		if over {
			done = 1
		}
		return err
	})
	return done
}

//export cudagoEventElapsed
func cudagoEventElapsed(start, end C.uint64_t, st *C.cudago_status) (ms C.double) {
	guard(st, func() error {
		s, err := Events.Get(uint64(start))
		if err != nil {
			return err
		}
		e, err := Events.Get(uint64(end))
		if err != nil {
			return err
		}
		v, err := e.ElapsedMS(s)
		ms = C.double(v)
		return err
	})
	return ms
}

// cudagoEventOpen opens an event of another process, of which data has 64 bytes.
//
//export cudagoEventOpen
func cudagoEventOpen(ordinal C.int32_t, data *C.uint8_t, handle *C.uintptr_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		e, err := c.OpenEvent(*(*[cuda.SharedBytes]byte)(unsafe.Pointer(data)))
		if err != nil {
			return err
		}
		*handle = C.uintptr_t(e.Handle())
		id = C.uint64_t(Events.Put(e))
		return nil
	})
	return id
}

//export cudagoEventExport
func cudagoEventExport(id C.uint64_t, data *C.uint8_t, st *C.cudago_status) {
	guard(st, func() error {
		e, err := Events.Get(uint64(id))
		if err != nil {
			return err
		}
		handle, err := e.Export()
		*(*[cuda.SharedBytes]byte)(unsafe.Pointer(data)) = handle
		return err
	})
}

//export cudagoEventShareable
func cudagoEventShareable(id C.uint64_t, st *C.cudago_status) (is C.int) {
	guard(st, func() error {
		e, err := Events.Get(uint64(id))
		if err == nil {
			is = border.Bool[C.int](e.IsShareable())
		}
		return err
	})
	return is
}
