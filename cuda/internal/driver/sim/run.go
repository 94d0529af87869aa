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
	allocs  []*graphAlloc

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
	if x.sim.config.seed != 0 {
		return g.shuffled(x, inside, s)
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

// shuffled runs nodes in a random order that respects the edges.
func (g *graphRun) shuffled(x *execution, inside int32, s span) *failure {
	random := rand.New(rand.NewPCG(x.sim.config.seed, runCount.Add(1)))
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
		pick := random.IntN(len(ready))
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
