// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// graphRun is one launch of an executable.
type graphRun struct {
	plan    *plan
	records []*record // of the event record nodes, as in plan.records
	awaited []*record // by the event wait nodes, as in plan.awaits; nil if there is nothing to wait for
	allocs  []*graphAlloc
	objects userObjects

	conditions []*condition
	looped     []uint32 // tasks of the race check in loops, the latest last
}

func (g *graphRun) recordOf(at int32) *record {
	for i, n := range g.plan.records {
		if n == at {
			return g.records[i]
		}
	}
	panic("BUG: event record node without a record")
}

// awaitedBy is what an event wait node waits for.
func (g *graphRun) awaitedBy(at int32) *record {
	for i, n := range g.plan.awaits {
		if n == at {
			return g.awaited[i]
		}
	}
	panic("BUG: event wait node without an answer")
}

// drop ends the launch, whether it ran or not. It completes the event records:
// waiting callers learn of a failure from the context.
func (g *graphRun) drop() {
	for _, rec := range g.records {
		rec.tl.advance(rec.seq)
	}
	for _, a := range g.allocs {
		a.unref()
	}
	for _, c := range g.conditions {
		c.unref()
	}
	g.objects.release()
}

func (g *graphRun) run(x *execution) *failure {
	x.graph = g
	defer func() { x.graph = nil }()
	defer g.drop()
	g.plan.begin()
	return g.some(x, -1, span{0, int32(len(g.plan.nodes))})
}

// some runs a range of nodes: all of them, or a body of the conditional node
// inside.
func (g *graphRun) some(x *execution, inside int32, s span) *failure {
	if x.sim.config.seed != 0 || g.plan.waits {
		return g.whatIsReady(x, inside, s)
	}
	for i := s.from; i < s.to; i = g.plan.nodes[i].next(i) {
		if f := g.step(x, i); f != nil {
			return f
		}
	}
	return nil
}

// step runs one node.
func (g *graphRun) step(x *execution, at int32) *failure {
	n := &g.plan.nodes[at]
	if n.work == nil || n.disabled {
		return nil
	}
	if r := x.ctx.result(); r != driver.CUDA_SUCCESS {
		return &failure{r, "the context failed"}
	}
	x.node = at
	if w, ok := n.work.(*conditionalWork); ok {
		return g.conditional(x, at, w)
	}
	f := n.work.run(x)
	if f == nil {
		return nil
	}
	f.text = fmt.Sprintf("graph launch, node %d of %d: %s", at, len(g.plan.nodes), f.text)
	if c := contextOfWork(n.work); c != nil && c != x.ctx {
		c.fail(f)
	}
	return f
}

var runCount atomic.Uint64

// whatIsReady runs nodes in an order that respects the edges: a random one if
// there is a seed, and one in which a node that waits for a value or a semaphore
// does not keep back those that may bring it.
func (g *graphRun) whatIsReady(x *execution, inside int32, s span) *failure {
	first := func(int) int { return 0 }
	if seed := x.sim.config.seed; seed != 0 {
		first = rand.New(rand.NewPCG(seed, runCount.Add(1))).IntN
	}
	wanted := make([]int, s.to-s.from)
	followers := make([][]int32, s.to-s.from)
	var ready []int32
	for i := s.from; i < s.to; i = g.plan.nodes[i].next(i) {
		for _, b := range g.plan.nodes[i].after {
			if g.plan.nodes[b].inside == inside && b != inside {
				wanted[i-s.from]++
				followers[b-s.from] = append(followers[b-s.from], i)
			}
		}
		if wanted[i-s.from] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		pick := g.pick(x, ready, first(len(ready)))
		at := ready[pick]
		ready[pick] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		if f := g.step(x, at); f != nil {
			return f
		}
		for _, i := range followers[at-s.from] {
			if wanted[i-s.from]--; wanted[i-s.from] == 0 {
				ready = append(ready, i)
			}
		}
	}
	return nil
}

// pick returns the first of the ready nodes, from one of them on and around, that
// does not wait for a value or a semaphore; that one if all do.
func (g *graphRun) pick(x *execution, ready []int32, from int) int {
	for i := range ready {
		at := (from + i) % len(ready)
		w, ok := g.plan.nodes[ready[at]].work.(awaiting)
		if !ok || !w.mayWait() {
			return at
		}
		if yes, f := w.ready(x); yes || f != nil {
			return at
		}
	}
	return from
}
