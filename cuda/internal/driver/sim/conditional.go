// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// Codes in this file that cuda.h does not specify were observed on an H200,
// driver 580.159, CUDA 13.0.

// condition is a number that kernels set and a conditional node reads.
// Immutable, except for the marked fields.
type condition struct {
	sim    *simulator
	handle driver.CUgraphConditionalHandle
	root   *graph // the outermost graph around the one that it was made for
	ctx    *context
	first  uint32
	assign bool // each launch begins with first; otherwise the value stays

	used  bool         // guarded by simulator.graphMu; a node reads it
	refs  atomic.Int32 // the graph, executables and launches
	value atomic.Uint32
}

// unref removes a holder. After the last, kernels can no longer set the
// condition.
func (c *condition) unref() {
	if c.refs.Add(-1) == 0 {
		c.sim.conditions.remove(c.handle)
	}
}

// setConditional is cudaGraphSetConditional of a kernel.
func (d *simulator) setConditional(handle uint64, value uint32) bool {
	c := d.conditions.get(driver.CUgraphConditionalHandle(handle))
	if c != nil {
		c.value.Store(value)
	}
	return c != nil
}

// conditionalWork is a conditional node: it reads its condition and runs the
// bodies, which follow it in the plan.
type conditionalWork struct {
	condition *condition
	kind      driver.CUgraphConditionalNodeType
	bodies    int
}

// run is never called: a graph launch runs the bodies itself.
func (w *conditionalWork) run(*execution) *failure {
	panic("BUG: a conditional node outside a graph launch")
}

// choose returns the body to run for a value, or -1.
func (w *conditionalWork) choose(value uint32) int {
	switch w.kind {
	case driver.CU_GRAPH_COND_TYPE_SWITCH:
		if int64(value) < int64(w.bodies) {
			return int(value)
		}
		return -1
	case driver.CU_GRAPH_COND_TYPE_IF:
		if value == 0 && w.bodies == 2 {
			return 1
		}
		if value == 0 {
			return -1
		}
	case driver.CU_GRAPH_COND_TYPE_WHILE:
		if value == 0 {
			return -1
		}
	}
	return 0
}

// bodiesAllowed reports whether a conditional node of a kind can have n bodies.
func bodiesAllowed(kind driver.CUgraphConditionalNodeType, n uint32) bool {
	switch kind {
	case driver.CU_GRAPH_COND_TYPE_IF:
		return n == 1 || n == 2
	case driver.CU_GRAPH_COND_TYPE_WHILE:
		return n == 1
	case driver.CU_GRAPH_COND_TYPE_SWITCH:
		return n > 0 && n <= mostBodies
	}
	return false
}

// mostBodies is a limit of this driver alone.
const mostBodies = 1 << 16

// root returns the outermost graph around g.
//
// Preconditions: simulator.graphMu must be locked, as for all that follow.
func (g *graph) root() *graph {
	for g.parent != nil {
		g = g.parent.graph
	}
	return g
}

func (d *simulator) CuGraphConditionalHandleCreate(h driver.CUgraph, ctx driver.CUcontext, first, flags uint32) (driver.CUgraphConditionalHandle, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, r := d.graph(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if flags&^driver.CU_GRAPH_COND_ASSIGN_DEFAULT != 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	ctxOf := d.contexts.get(ctx)
	if ctxOf == nil {
		return 0, driver.CUDA_ERROR_INVALID_CONTEXT
	}
	c := &condition{sim: d, root: g.root(), ctx: ctxOf, first: first, assign: flags != 0}
	c.refs.Store(1)
	c.handle = d.conditions.add(c)
	g.conditions = append(g.conditions, c)
	return c.handle, r
}

// CuGraphAddNode adds conditional nodes; the other kinds have calls of their own.
func (d *simulator) CuGraphAddNode(h driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUgraphNodeParams) (driver.CUgraphNode, []driver.CUgraph, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, nil, r
	}
	if params == nil {
		return 0, nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	switch params.Type {
	case driver.CU_GRAPH_NODE_TYPE_GRAPH:
		n, r := d.addChild(h, deps, params.ChildGraph())
		return n, nil, r
	case driver.CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return d.addConditional(h, deps, params)
	}
	return 0, nil, driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) addConditional(h driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUgraphNodeParams) (driver.CUgraphNode, []driver.CUgraph, driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, before, r := d.target(h, deps)
	if r != driver.CUDA_SUCCESS {
		return 0, nil, r
	}
	c, r := d.conditionFor(g, &params.Conditional)
	if r != driver.CUDA_SUCCESS {
		return 0, nil, r
	}
	c.used = true
	n := &node{kind: params.Type, work: &conditionalWork{c, params.Conditional.Type, int(params.Conditional.Size)}}
	for range params.Conditional.Size {
		b := d.newGraph()
		b.parent = n
		n.bodies = append(n.bodies, b)
	}
	d.addNode(g, n, before)
	bodies := make([]driver.CUgraph, len(n.bodies))
	for i, b := range n.bodies {
		bodies[i] = b.handle
	}
	return n.handle, bodies, r
}

// conditionFor checks the parameters of a conditional node of g.
func (d *simulator) conditionFor(g *graph, p *driver.CUDA_CONDITIONAL_NODE_PARAMS) (*condition, driver.CUresult) {
	if !bodiesAllowed(p.Type, p.Size) {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	ctx := d.contexts.get(p.Ctx)
	if ctx == nil {
		return nil, driver.CUDA_ERROR_INVALID_CONTEXT
	}
	c := d.conditions.get(p.Handle)
	if c == nil || c.used || c.root != g.root() || c.ctx != ctx {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	return c, driver.CUDA_SUCCESS
}

// isConditional reports whether a graph, or one in it, has conditions. Such a
// graph has one executable at a time, and can be neither cloned nor embedded.
func (g *graph) isConditional() bool {
	return len(g.conditions) > 0 || slices.ContainsFunc(g.nodes.All(), func(n *node) bool {
		return n.bodies != nil || n.child != nil && n.child.isConditional()
	})
}

// isBody reports whether the graph is, or is in, a body of a conditional node.
func (g *graph) isBody() bool {
	for ; g.parent != nil; g = g.parent.graph {
		if g.parent.bodies != nil {
			return true
		}
	}
	return false
}

// unused reports whether the graph, or one in it, has a condition without a node.
func (g *graph) unused() bool {
	if slices.ContainsFunc(g.conditions, func(c *condition) bool { return !c.used }) {
		return true
	}
	return slices.ContainsFunc(g.nodes.All(), func(n *node) bool {
		return slices.ContainsFunc(n.bodies, (*graph).unused)
	})
}

// misplaced returns a node in the body of a conditional node that is not
// allowed there. Copies of pageable memory are not: NVIDIA's driver (580.159)
// crashes on them.
func (g *graph) misplaced() *node {
	inBody := g.isBody()
	for _, n := range g.nodes.All() {
		if inBody && !allowedInBody(n) {
			return n
		}
		if n.child != nil {
			if m := n.child.misplaced(); m != nil {
				return m
			}
		}
		for _, b := range n.bodies {
			if m := b.misplaced(); m != nil {
				return m
			}
		}
	}
	return nil
}

// checkConditions refuses graphs that break the rules of conditional nodes.
func (g *graph) checkConditions(params *driver.CUDA_GRAPH_INSTANTIATE_PARAMS) driver.CUresult {
	if g.unused() {
		params.Result_out = driver.CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	if n := g.misplaced(); n != nil {
		params.Result_out, params.HErrNode_out = driver.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, n.handle
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	return driver.CUDA_SUCCESS
}

// holdConditions keeps the conditions of a plan valid for kernels.
//
// Preconditions: x.mu must be locked, or nobody else knows x yet.
func (x *graphExec) holdConditions(p *plan) {
	for i := range p.nodes {
		if w, ok := p.nodes[i].work.(*conditionalWork); ok && !slices.Contains(x.conditions, w.condition) {
			w.condition.refs.Add(1)
			x.conditions = append(x.conditions, w.condition)
		}
	}
}

func allowedInBody(n *node) bool {
	switch w := n.work.(type) {
	case nil, *kernelWork, *fillWork, *conditionalWork:
		return true
	case *copyWork:
		return !w.src.pageable() && !w.dst.pageable()
	}
	return false
}

// begin gives the conditions of a launch their first values.
func (p *plan) begin() {
	for i := range p.nodes {
		if w, ok := p.nodes[i].work.(*conditionalWork); ok && w.condition.assign {
			w.condition.value.Store(w.condition.first)
		}
	}
}

// conditional runs the bodies of a conditional node.
func (g *graphRun) conditional(x *execution, at int32, w *conditionalWork) *failure {
	n := &g.plan.nodes[at]
	outer := x.turns
	defer func() { x.turns = outer }()
	running := x.ctx.dev.cancel.enter()
	defer running.leave()
	for turn := uint64(0); ; turn++ {
		body := w.choose(w.condition.value.Load())
		if body < 0 {
			return nil
		}
		x.turns = append(slices.Clip(outer), turnOf{at, turn})
		if f := g.some(x, at, n.bodies[body]); f != nil {
			return f
		}
		if w.kind != driver.CU_GRAPH_COND_TYPE_WHILE {
			return nil
		}
		if steps := x.sim.config.steps; steps > 0 && turn >= steps {
			return &failure{driver.CUDA_ERROR_LAUNCH_TIMEOUT, fmt.Sprintf(
				"step budget exhausted: the body of conditional %s ran %d times, and the condition is still %d",
				g.plan.label(at), turn+1, w.condition.value.Load())}
		}
		select {
		case <-running.stop:
			return x.loopCanceled(running, g.plan.label(at), turn+1)
		default:
		}
	}
}

// loopCanceled is the end of a loop by Cancel, or by the end of the driver.
func (x *execution) loopCanceled(r *running, label string, turns uint64) *failure {
	text := fmt.Sprintf("canceled in the loop of conditional %s, after %d turns", label, turns)
	if x.ctx.result() == driver.CUDA_ERROR_CONTEXT_IS_DESTROYED {
		return nil
	}
	if r.canceler.isClosed() {
		return &failure{driver.CUDA_ERROR_DEINITIALIZED, text}
	}
	r.report(x.ctx, text)
	return nil
}

// mostTurned limits the pieces of work in loops that a graph launch remembers
// for the race check: nothing waits within a launch, so they would accumulate.
const mostTurned = 4096

// turned notes a piece of work in a loop, and forgets old ones.
func (g *graphRun) turned(o *order, task uint32) {
	g.looped = append(g.looped, task)
	if len(g.looped) < 2*mostTurned {
		return
	}
	o.forget(g.looped[:mostTurned])
	g.looped = append(g.looped[:0], g.looped[mostTurned:]...)
}

// turnOf says how often the loop of a conditional node had turned.
type turnOf struct {
	node int32
	turn uint64
}

// orderedByTurns reports whether work of one graph launch is ordered by being
// in different turns of one loop, and then whether a comes before b.
func orderedByTurns(a, b []turnOf) (before, ordered bool) {
	for i := range min(len(a), len(b)) {
		if a[i].node != b[i].node {
			return false, false
		}
		if a[i].turn != b[i].turn {
			return a[i].turn < b[i].turn, true
		}
	}
	return false, false
}
