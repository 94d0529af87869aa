// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package stream

/*
#include <stdlib.h>
#include "stream.h"
*/
import "C"

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
)

// batchAge is how long a batch of kept references stays open. What a launch
// keeps is held for that much longer; launches in a row share one event.
const batchAge = time.Millisecond

// A watch that has nothing to do goes on for standby, looking each rest: a program
// that launches now and then pays for the wake-up of the reaper's thread, which
// costs more than several launches, only after a pause.
const (
	standby = time.Second
	rest    = 8 * time.Millisecond
)

// A watch is the reaper's look after the open batches of one stream, which it
// closes one after the other. It ends when there has been none for a while, and the
// next reference begins another.
type watch struct {
	id     uint64
	looked time.Time
	used   time.Time // when there was a batch
}

// cudagoKeepWatch begins to look after the open batch of a stream.
//
//export cudagoKeepWatch
func cudagoKeepWatch(id C.uint64_t) {
	// If the reaper has stopped, the process ends, and what is kept is leaked.
	now := time.Now()
	border.Reaper.Add(&watch{uint64(id), now, now})
}

// Busy implements [finalize.Standing].
func (w *watch) Busy() bool {
	return Lines.Has(w.id, func(l *Timeline) bool { return C.cudago_batch_is_open(l.block) != 0 })
}

// Patience implements [finalize.Standing].
func (w *watch) Patience() time.Duration {
	if w.looked.Equal(w.used) {
		return batchAge
	}
	return rest
}

// Step implements [finalize.Item].
func (w *watch) Step() (done bool, err error) {
	l, err := Lines.Get(w.id)
	if err != nil {
		return true, nil //nolint:nilerr // closed, and what it kept was dropped then
	}
	now := time.Now()
	if now.Sub(w.looked) < batchAge && !border.Reaper.Hurried() {
		return false, nil
	}
	w.looked = now
	done = now.Sub(w.used) >= standby
	if done {
		// Before the look: whoever adds to the batch after it, or has the batch in
		// its hands now, sees that nobody watches, and begins another watch.
		(*atomic.Int32)(unsafe.Pointer(&l.block.watched)).Store(0)
	}
	var b *batch
	l.Moving(func() {
		if b = l.takeBatch(); b != nil {
			l.After(b.position, func() { border.Drops.Put(b.refs...) })
		}
	})
	if b == nil {
		return done, nil
	}
	w.used = now
	l.markBehind(b)
	return done, l.prepareEvent()
}

// prepareEvent sees to it that the next batch of an exposed stream has an event,
// which a thread with the GIL must not create.
func (t *Timeline) prepareEvent() error {
	if t.block.clock.exposed == 0 {
		return nil
	}
	c := t.Stream().Context()
	e, err := c.TakeEvent(true)
	if err == nil {
		c.PutEvent(e)
	}
	return err
}

// covers are the events of open batches and of covers, which C records.
var covers struct {
	mu sync.Mutex
	by map[uintptr]*cuda.Event // guarded by mu
}

// cudagoKeepEvent returns an event for an open batch of the stream, or 0 if none
// is idle.
//
//export cudagoKeepEvent
func cudagoKeepEvent(id C.uint64_t) C.uintptr_t {
	l, err := Lines.Get(uint64(id))
	if err != nil {
		return 0
	}
	e, err := l.Stream().Context().TakeEvent(false)
	if err != nil || e == nil {
		return 0
	}
	return lent(e)
}

// lent notes an event that C has the handle of, until takeCover.
func lent(e *cuda.Event) C.uintptr_t {
	covers.mu.Lock()
	defer covers.mu.Unlock()
	if covers.by == nil {
		covers.by = map[uintptr]*cuda.Event{}
	}
	covers.by[e.Handle()] = e
	return C.uintptr_t(e.Handle())
}

// cudagoKeepEventOver takes back the event of a batch whose work has ended.
//
//export cudagoKeepEventOver
func cudagoKeepEventOver(handle C.uintptr_t) {
	e := takeCover(handle)
	e.Context().PutEvent(e)
}

func takeCover(handle C.uintptr_t) *cuda.Event {
	covers.mu.Lock()
	defer covers.mu.Unlock()
	e := covers.by[uintptr(handle)]
	delete(covers.by, uintptr(handle))
	return e
}

// A batch is what an open batch held: references until position, and the event
// that was recorded behind the work up to covered, if there is one.
type batch struct {
	refs              []uintptr
	position, covered uint64
	event             *cuda.Event
}

// takeBatch takes the open batch; nil if there is none, or a thread adds to it.
func (t *Timeline) takeBatch() *batch {
	b := C.cudago_batch_take(t.block)
	if b == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(b))
	refs := references((*C.uintptr_t)(unsafe.Add(unsafe.Pointer(b), C.sizeof_cudago_batch)), int(b.n))
	taken := &batch{refs: refs, position: uint64(b.position), covered: uint64(b.covered)}
	if b.event != 0 {
		taken.event = takeCover(b.event)
	}
	return taken
}

// markBehind gives the line the event of b, which may be nil. It may wait for the
// driver, and so comes after what must not.
func (t *Timeline) markBehind(b *batch) {
	if b != nil && b.event != nil {
		t.Behind(b.covered, b.event)
	}
}

// references copies references out of C's memory.
func references(at *C.uintptr_t, n int) []uintptr {
	list := make([]uintptr, n)
	for i, r := range unsafe.Slice(at, n) {
		list[i] = uintptr(r)
	}
	return list
}

// cudagoKeepUntil takes over references and keeps them until position pos of the
// stream has ended: for what no batch has room for.
//
//export cudagoKeepUntil
func cudagoKeepUntil(id, pos C.uint64_t, refs *C.uintptr_t, n C.int) {
	list := references(refs, int(n))
	OnLine(uint64(id), func(l *graph.Line) { l.After(uint64(pos), func() { border.Drops.Put(list...) }) })
}
