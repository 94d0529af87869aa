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
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
)

// batchAge is how long a batch of kept references stays open. What a launch
// keeps is held for that much longer; launches in a row share one event.
const batchAge = time.Millisecond

// A watch is the reaper's look at the open batch of one stream. It ends by
// closing the batch, and the next reference begins another.
type watch struct {
	id    uint64
	since time.Time
}

// cudagoKeepWatch begins to look after the open batch of a stream.
//
//export cudagoKeepWatch
func cudagoKeepWatch(id C.uint64_t) {
	// If the reaper has stopped, the process ends, and what is kept is leaked.
	border.Reaper.Add(&watch{uint64(id), time.Now()})
}

// Step implements [finalize.Item].
func (w *watch) Step() (done bool, err error) {
	l, err := Lines.Get(w.id)
	if err != nil {
		return true, nil //nolint:nilerr // closed, and what it kept was dropped then
	}
	if time.Since(w.since) < batchAge {
		return false, nil
	}
	// Before the look: whoever adds to the batch after it, or has the batch in
	// its hands now, sees that nobody watches, and begins another watch.
	(*atomic.Int32)(unsafe.Pointer(&l.block.watched)).Store(0)
	if refs, pos := l.takeBatch(); refs != nil {
		l.After(pos, func() { border.Drops.Put(refs...) })
	}
	return true, nil
}

// takeBatch takes the open batch; nil if there is none, or a
// thread adds to it.
func (t *Timeline) takeBatch() (refs []uintptr, pos uint64) {
	b := C.cudago_batch_take(t.block)
	if b == nil {
		return nil, 0
	}
	defer C.free(unsafe.Pointer(b))
	return references((*C.uintptr_t)(unsafe.Add(unsafe.Pointer(b), C.sizeof_cudago_batch)), int(b.n)), uint64(b.position)
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
