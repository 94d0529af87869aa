// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import "sync"

// A gate keeps changes of an executable and launches of it apart. Launches may
// be inside together, a change only alone. It is fair in both directions:
// launches that arrive while a change waits enter after that change and before
// the next one, however many arrive on either side. The zero value is open.
type gate struct {
	mu       sync.Mutex
	free     sync.Cond // of mu, once set
	inside   int       // guarded by mu; launches
	changing bool      // guarded by mu
	changes  int       // guarded by mu; changes that wait
	queued   int       // guarded by mu; launches that wait
	passes   int       // guarded by mu; launches that waited for a change, and enter before the next
	turn     uint64    // guarded by mu; changes that have ended
}

func (g *gate) lock() {
	g.mu.Lock()
	g.free.L = &g.mu
}

// enter waits for pending changes, and lets a launch in.
func (g *gate) enter() {
	g.lock()
	defer g.mu.Unlock()
	if g.changing || g.changes > 0 {
		g.queued++
		for turn := g.turn; turn == g.turn; {
			g.free.Wait()
		}
		// The last change has counted this launch: see admit.
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

// change waits for the launches that are inside or that an earlier change kept
// waiting, and lets a change in. The next change begins after done.
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

// admit ends a change: all launches that are waiting now enter before the next
// one.
func (g *gate) admit() {
	g.lock()
	defer g.mu.Unlock()
	g.changing = false
	g.passes, g.queued = g.queued, 0
	g.turn++
	g.free.Broadcast()
}

// busy reports whether a launch or a change is inside.
func (g *gate) busy() bool {
	g.lock()
	defer g.mu.Unlock()
	return g.inside > 0 || g.changing
}
