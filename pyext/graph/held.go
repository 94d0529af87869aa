// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/border"
)

// A pyRef is Go's only reference to a Python object that a graph was given. It
// is a graph.Retainer.
//
// The collector must see the reference as long as one of Python's graphs or
// executables holds it, or a cycle through the graph would never be collected;
// but it must not see it while a launch that uses it may be in flight. So the
// first wrapper that holds the object takes Go's count into its own list
// (held.c), and each further wrapper adds a count. A graph that releases the
// object drops its count at once. What an executable releases stays counted, out
// of the collector's sight, until its launches have ended (Exec's OnReleased).
// When the last wrapper releases it, the count is Go's again until Release.
type pyRef struct {
	object  uintptr
	visible int          // guarded by the GIL; how many wrappers hold it
	leaving atomic.Int32 // executables' counts that no wrapper shows any more
}

// Release implements graph.Retainer.
func (r *pyRef) Release() { border.Drops.Put(r.object) }

// another returns another reference to the same object. It needs the GIL.
func (r *pyRef) another() *pyRef {
	C.cudago_incref(C.uintptr_t(r.object))
	return &pyRef{object: r.object}
}

// A holder mirrors what a graph or an executable holds in the list that its
// Python wrapper shows to the collector.
type holder struct {
	launches bool           // immutable; true for an executable: what it releases may be in flight
	list     *C.cudago_held // guarded by the GIL; nil before open and after end
	applied  []change       // guarded by the GIL; empty, the room of the changes before

	mu      sync.Mutex
	isOpen  bool     // guarded by mu; before that nothing of what is reported counts
	changes []change // guarded by mu; reported by package graph, not yet applied
}

type change struct {
	ref  *pyRef
	add  bool
	drop bool // when removed, the count goes too
}

// tell is graph's OnBundle. Any goroutine; a lock of package graph is held.
// It skips what is not Python's, a loaded kernel: that is nothing to the
// collector.
func (h *holder) tell(list []graph.Operand, add bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.isOpen {
		return
	}
	for i := range list {
		if ref, ok := list[i].Retainer.(*pyRef); ok {
			h.changes = append(h.changes, h.change(ref, add))
		}
	}
}

func (h *holder) change(ref *pyRef, add bool) change {
	c := change{ref: ref, add: add}
	if !add { // every release comes from Python, with the GIL
		border.NeedsGIL()
		ref.visible--
		if more := ref.visible > 0; more && h.launches {
			ref.leaving.Add(1)
		} else {
			c.drop = more
		}
	}
	return c
}

// apply brings the list up to date. It needs the GIL, and runs before the call
// that made the changes returns to C, so before anything can be dropped.
func (h *holder) apply() {
	border.NeedsGIL()
	h.mu.Lock()
	changes := h.changes
	h.changes, h.applied = h.applied, nil // a drop may run Python, which comes here again
	h.mu.Unlock()
	if h.list != nil {
		h.enter(changes)
	}
	clear(changes)
	h.applied = changes[:0]
}

// enter makes the changes in the list, which Go can write by itself: a call of C
// for each node would cost as much as the rest.
func (h *holder) enter(changes []change) {
	var counted, dropped, hidden []C.uintptr_t
	for _, c := range changes {
		object := C.uintptr_t(c.ref.object)
		if c.add {
			counted = h.add(c.ref, counted)
			continue
		}
		hidden = append(hidden, object)
		if c.drop {
			dropped = append(dropped, object)
		}
	}
	h.hide(hidden)
	count(counted)
	if len(dropped) > 0 {
		C.cudago_drop_references(&dropped[0], C.size_t(len(dropped)))
	}
}

// shown is the list with its room.
func (h *holder) shown() []C.uintptr_t {
	return unsafe.Slice((*C.uintptr_t)(unsafe.Pointer(h.list.v)), int(h.list.cap))
}

// show adds to the list. If memory runs out the object stays invisible to the
// collector, which at worst leaks a cycle; its count is kept.
func (h *holder) show(object C.uintptr_t) {
	if h.list.n == h.list.cap && C.cudago_held_grow(h.list) != 0 {
		return
	}
	h.shown()[h.list.n] = object
	h.list.n++
	h.list.changed = 1
}

// hide takes objects out of the list, each once for each time that it is named. Few
// are searched for, most often the newest; many are counted, so that the list is
// gone through once.
func (h *holder) hide(objects []C.uintptr_t) {
	const few = 8
	if len(objects) == 0 {
		return
	}
	h.list.changed = 1
	if len(objects) <= few {
		for _, object := range objects {
			C.cudago_held_hide(h.list, object)
		}
		return
	}
	left := make(map[C.uintptr_t]int, len(objects))
	for _, object := range objects {
		left[object]++
	}
	list, kept := h.shown(), 0
	for _, object := range list[:int(h.list.n)] {
		if n := left[object]; n > 0 {
			left[object] = n - 1
			continue
		}
		list[kept] = object
		kept++
	}
	h.list.n = C.size_t(kept)
}

// released is graph's OnReleased: the launches that used these objects of an
// executable have ended. Any goroutine.
func released(list []graph.Retainer) {
	for _, r := range list {
		ref, ok := r.(*pyRef)
		if !ok {
			continue
		}
		// Never below zero: the last wrapper's count was Go's own, and goes with
		// Release. Which of several equal counts goes first does not matter.
		for n := ref.leaving.Load(); n > 0; n = ref.leaving.Load() {
			if ref.leaving.CompareAndSwap(n, n-1) {
				border.Drops.Put(ref.object)
				break
			}
		}
	}
}

// open makes the list of an owner that nobody else has yet; each visits what the
// owner holds. It needs the GIL.
func (h *holder) open(each func(visit func([]graph.Operand))) *C.cudago_held {
	border.NeedsGIL()
	if h.list = C.cudago_held_new(); h.list == nil {
		return nil
	}
	h.mu.Lock()
	h.isOpen = true
	h.mu.Unlock()
	var counted []C.uintptr_t
	each(func(list []graph.Operand) {
		for i := range list {
			if ref, ok := list[i].Retainer.(*pyRef); ok {
				counted = h.add(ref, counted)
			}
		}
	})
	count(counted)
	return h.list
}

// add shows a reference. If the object needs one more count for that, it is
// appended to counted.
func (h *holder) add(ref *pyRef, counted []C.uintptr_t) []C.uintptr_t {
	object := C.uintptr_t(ref.object)
	if ref.visible++; ref.visible > 1 { // the first wrapper takes Go's own count
		counted = append(counted, object)
	}
	h.show(object)
	return counted
}

func count(objects []C.uintptr_t) {
	if len(objects) > 0 {
		C.cudago_held_count(&objects[0], C.size_t(len(objects)))
	}
}

// end frees the list after the removal of everything in it was reported. The
// wrapper must not use the list any more. It needs the GIL.
func (h *holder) end() {
	border.NeedsGIL()
	h.mu.Lock()
	changes := h.changes
	h.changes = nil
	h.mu.Unlock()
	var dropped []C.uintptr_t // the wrapper's own counts; a list that goes is not searched
	for _, c := range changes {
		if c.add { // reported and not applied: its removal follows
			if c.ref.visible++; c.ref.visible > 1 {
				C.cudago_incref(C.uintptr_t(c.ref.object))
			}
		} else if c.drop {
			dropped = append(dropped, C.uintptr_t(c.ref.object))
		}
	}
	C.cudago_held_free(h.list)
	h.list = nil
	if len(dropped) > 0 {
		C.cudago_drop_references(&dropped[0], C.size_t(len(dropped)))
	}
}

// operands takes over the references that C passes in.
func operands(refs *C.cudago_ref, n C.int) []graph.Operand {
	list, own := make([]graph.Operand, int(n)), make([]pyRef, int(n))
	for i, r := range unsafe.Slice(refs, int(n)) {
		ref := &own[i]
		ref.object = uintptr(r.object)
		list[i] = graph.Operand{
			Name: roleName(int(r.role)), Object: ref, NBytes: uint64(r.nbytes), Reason: reasons[r.reason], Retainer: ref,
		}
		if m := capturedOf(r.memory); m != nil {
			list[i].Memory = m.CapturedMemory
		}
	}
	return list
}

func releaseOperands(list []graph.Operand) {
	for _, o := range list {
		o.Retainer.Release()
	}
}

var (
	roles   = [...]string{"src", "dst", "callback", "kernel", "event", "memory", "semaphore", "owner", "object"} // enum cudago_role
	reasons = [...]string{"memcpy", "memset", "kernel", "host", "event", "free", "batch mem op", "semaphore", "handle", "retain"}
)

// The names that errors use: "parameter 1 of kernel saxpy must be ...".
var parameterNames = func() (names [C.CUDAGO_MAX_PARAMS]string) {
	for i := range names {
		names[i] = "parameter " + strconv.Itoa(i)
	}
	return names
}()

func roleName(role int) string {
	if role < len(roles) {
		return roles[role]
	}
	return parameterNames[role-len(roles)]
}
