// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"sync"
	"sync/atomic"
)

// timeline is a counter of completed work that others can wait for.
type timeline struct {
	stream *stream       // whose work it counts; nil for a graph's event. Immutable
	done   atomic.Uint64 // written with mu held

	mu      sync.Mutex
	waiters []waiter // guarded by mu
	launch  point    // guarded by mu; a graph's event: the launch that records it
}

// standsFor is the point of a stream by which a graph's event has been reached.
// Checks use it; the event itself may be reached sooner.
func (t *timeline) standsFor(p point) point {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.launch.tl != nil {
		return t.launch
	}
	return p
}

func (t *timeline) setLaunch(p point) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.launch = p
}

type waiter struct {
	seq  uint64
	wake chan struct{}
}

// advance says that everything up to seq is complete.
func (t *timeline) advance(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done.Store(seq)
	if len(t.waiters) == 0 {
		return
	}
	t.waiters = slices.DeleteFunc(t.waiters, func(w waiter) bool {
		if w.seq > seq {
			return false
		}
		close(w.wake)
		return true
	})
}

// await returns a channel that is closed once seq is complete, or nil if it is.
func (t *timeline) await(seq uint64) <-chan struct{} {
	if t.done.Load() >= seq {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done.Load() >= seq {
		return nil
	}
	w := waiter{seq, make(chan struct{})}
	t.waiters = append(t.waiters, w)
	return w.wake
}

// point is a moment on a timeline: "everything up to seq". The zero point has
// always been reached.
type point struct {
	tl  *timeline
	seq uint64
}

func (p point) reached() bool { return p.tl == nil || p.tl.done.Load() >= p.seq }

// wait blocks until the point is reached. No lock may be held: the caller may
// find itself doing the work.
func (p point) wait() {
	if p.reached() {
		return
	}
	if p.tl.stream != nil {
		p.tl.stream.help(p.seq)
	}
	if c := p.tl.await(p.seq); c != nil {
		<-c
	}
}

func allReached(points []point) bool {
	for _, p := range points {
		if !p.reached() {
			return false
		}
	}
	return true
}
