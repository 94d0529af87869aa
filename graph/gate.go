// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import "sync"

// A gate keeps changes of an executable and launches of it apart. Launches go in
// together, changes alone. It is fair in both directions: launches that come
// while a change waits go in after that change, and before the next one, however
// fast either side comes. The zero value is open.
type gate struct {
	mu       sync.Mutex
	free     sync.Cond // of mu, once set
	inside   int       // guarded by mu; launches
	changing bool      // guarded by mu
	changes  int       // guarded by mu; changes that wait
	queued   int       // guarded by mu; launches that wait
	passes   int       // guarded by mu; launches that waited while a change went, and go before the next
	turn     uint64    // guarded by mu; changes that have gone
}

func (g *gate) lock() {
	g.mu.Lock()
	g.free.L = &g.mu
}

// enter waits for the changes that wait or go, and lets a launch in.
func (g *gate) enter() {
	g.lock()
	defer g.mu.Unlock()
	if g.changing || g.changes > 0 {
		g.queued++
		for turn := g.turn; turn == g.turn; {
			g.free.Wait()
		}
		// The change that went last has counted this one: see admit.
		g.passes--
	}
	g.inside++
}

// leave ends a launch.
func (g *gate) leave() {
	g.lock()
	defer g.mu.Unlock()
	g.inside--
	g.free.Broadcast()
}

// change waits for the launches that are inside, or that an earlier change has
// kept waiting, and lets a change go. Another one must not begin before done.
func (g *gate) change() (done func()) {
	g.lock()
	defer g.mu.Unlock()
	g.changes++
	for g.changing || g.inside > 0 || g.passes > 0 {
		g.free.Wait()
	}
	g.changes--
	g.changing = true
	return g.admit
}

// admit ends a change: all launches that wait now go before the next one.
func (g *gate) admit() {
	g.lock()
	defer g.mu.Unlock()
	g.changing = false
	g.passes, g.queued = g.queued, 0
	g.turn++
	g.free.Broadcast()
}

// busy reports whether a launch is inside or a change goes.
func (g *gate) busy() bool {
	g.lock()
	defer g.mu.Unlock()
	return g.inside > 0 || g.changing
}
