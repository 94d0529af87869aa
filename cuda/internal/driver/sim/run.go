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
}

func (g *graphRun) recordOf(at int32) *record {
	for i, n := range g.plan.records {
		if n == at {
			return g.records[i]
		}
	}
	panic("BUG: event record node without a record")
}

// drop ends the launch, run or not. It completes the event records: whoever
// waits for one learns of a failure from the context.
func (g *graphRun) drop() {
	for _, rec := range g.records {
		rec.tl.advance(rec.seq)
	}
	for _, a := range g.allocs {
		a.unref()
	}
}

func (g *graphRun) run(x *execution) *failure {
	x.graph = g
	defer func() { x.graph = nil }()
	defer g.drop()
	if x.sim.config.seed != 0 {
		return g.shuffled(x)
	}
	for i := range g.plan.nodes {
		if f := g.step(x, int32(i)); f != nil {
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

// shuffled runs the nodes in a random order that respects the edges.
func (g *graphRun) shuffled(x *execution) *failure {
	random := rand.New(rand.NewPCG(x.sim.config.seed, runCount.Add(1)))
	wanted := make([]int, len(g.plan.nodes))
	followers := make([][]int32, len(g.plan.nodes))
	var ready []int32
	for i := range g.plan.nodes {
		after := g.plan.nodes[i].after
		wanted[i] = len(after)
		for _, b := range after {
			followers[b] = append(followers[b], int32(i))
		}
		if len(after) == 0 {
			ready = append(ready, int32(i))
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
		for _, i := range followers[at] {
			if wanted[i]--; wanted[i] == 0 {
				ready = append(ready, i)
			}
		}
	}
	return nil
}
