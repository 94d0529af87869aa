// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"sync"
	"sync/atomic"
)

// DropOptions are the owner's part of a [DropQueue].
type DropOptions[Ref any] struct {
	// Drop drops a batch. It runs on the goroutine that drains, with what that
	// one holds (the GIL), and may call back into the queue: dropping a Python
	// reference runs arbitrary code. Required.
	Drop func([]Ref)
	// Request asks for a Drain in the near future, from any goroutine. It is
	// called once per batch. False means that the request was refused: the next
	// Put asks again. Nil: nobody is asked.
	Request func() bool
	// Pending, if not nil, is where the queue keeps its hint: 1 while something
	// waits, 0 otherwise, written atomically. It may be C memory, so that C
	// can test it with one load; it must outlive the queue.
	Pending *uint32
}

// A DropQueue takes references from any goroutine and lets the holder of the
// GIL drop them. Safe for concurrent use.
type DropQueue[Ref any] struct {
	drop    func([]Ref)
	request func() bool
	pending *uint32
	leaked  atomic.Uint64

	mu     sync.Mutex
	refs   []Ref // guarded by mu
	asked  bool  // guarded by mu; a request is under way for refs
	closed bool  // guarded by mu
}

// NewDropQueue returns an empty queue.
func NewDropQueue[Ref any](o DropOptions[Ref]) *DropQueue[Ref] {
	if o.Drop == nil {
		panic("BUG: drop queue without Drop")
	}
	if o.Pending == nil {
		o.Pending = new(uint32)
	}
	return &DropQueue[Ref]{drop: o.Drop, request: o.Request, pending: o.Pending}
}

// Put queues refs. It never blocks on Python, so any goroutine, cleanup or
// callback thread may call it. After [DropQueue.Close] the references are
// leaked and counted: whoever they belong to is going or gone.
func (q *DropQueue[Ref]) Put(refs ...Ref) {
	if len(refs) == 0 {
		return
	}
	if q.enqueue(refs) && !q.request() {
		q.mu.Lock()
		q.asked = false
		q.mu.Unlock()
	}
}

// enqueue reports whether the caller is the one who has to ask.
func (q *DropQueue[Ref]) enqueue(refs []Ref) (ask bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.leaked.Add(uint64(len(refs)))
		return false
	}
	q.refs = append(q.refs, refs...)
	atomic.StoreUint32(q.pending, 1)
	ask = q.request != nil && !q.asked
	q.asked = q.asked || ask
	return ask
}

// Pending reports whether something waits, by one atomic load.
func (q *DropQueue[Ref]) Pending() bool { return atomic.LoadUint32(q.pending) != 0 }

// Len returns how many references wait.
func (q *DropQueue[Ref]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.refs)
}

// Leaked returns how many references came after [DropQueue.Close].
func (q *DropQueue[Ref]) Leaked() uint64 { return q.leaked.Load() }

// Drain drops what waits, until nothing does, and returns how much it dropped.
// The caller holds the GIL. Dropping may re-enter Drain: each batch is taken
// out before it is dropped, so that nothing is dropped twice.
func (q *DropQueue[Ref]) Drain() (dropped int) {
	for {
		batch := q.take(false)
		if len(batch) == 0 {
			return dropped
		}
		q.drop(batch)
		dropped += len(batch)
	}
}

// Close drops what waits and closes the queue in one step, so that nothing is
// left in between. The caller holds the GIL, for the last time.
func (q *DropQueue[Ref]) Close() (dropped int) {
	for {
		batch := q.take(true)
		if len(batch) == 0 {
			return dropped
		}
		q.drop(batch)
		dropped += len(batch)
	}
}

// take empties the queue; with closing, it closes a queue that is empty.
func (q *DropQueue[Ref]) take(closing bool) []Ref {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch := q.refs
	q.refs, q.asked = nil, false
	atomic.StoreUint32(q.pending, 0)
	if closing && len(batch) == 0 {
		q.closed = true
	}
	return batch
}
