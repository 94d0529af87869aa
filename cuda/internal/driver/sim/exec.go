// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// graphExec is an executable graph.
type graphExec struct {
	sim      *simulator
	graph    *graph          // what it was made from
	shape    *shape          // immutable, but see there
	index    map[*node]int32 // immutable; nodes of the graph and its children, in the plan
	contexts []*context      // immutable
	home     *context        // immutable; current when it was instantiated, or nil
	autoFree bool
	// What its nodes allocate and free. Immutable.
	allocs, unfreed, frees []*graphAlloc

	held userObjects // guarded by mu; the objects of all shapes

	mu       sync.Mutex
	plan     *plan // guarded by mu; replaced, not changed, once launched is set
	launched bool  // guarded by mu; plan was launched
	last     point // guarded by mu; the end of the latest launch
	// conditions are those of plan, and of earlier plans.
	conditions []*condition // guarded by mu
	// soundAt is the count of frees at which no operand dangled.
	soundAt uint64 // guarded by mu
}

const instantiateFlags = driver.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | driver.CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
	driver.CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | driver.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY

func (d *simulator) CuGraphInstantiateWithParams(h driver.CUgraph, params *driver.CUDA_GRAPH_INSTANTIATE_PARAMS) (driver.CUgraphExec, driver.CUresult) {
	if params == nil {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	params.HErrNode_out, params.Result_out = 0, driver.CUDA_GRAPH_INSTANTIATE_ERROR
	if params.Flags&^instantiateFlags != 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	if params.Flags&driver.CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH != 0 {
		return 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	if params.Flags&driver.CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD != 0 {
		if _, r := d.stream(params.HUploadStream); r != driver.CUDA_SUCCESS {
			return 0, r
		}
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	d.behindLaunches()
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	g, r := d.graph(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	x, r := d.newExec(g, params)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	_, x.home, _ = d.threadState()
	x.autoFree = params.Flags&driver.CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH != 0
	params.Result_out = driver.CUDA_GRAPH_INSTANTIATE_SUCCESS
	return d.execs.add(x), r
}

// newExec makes an executable of a graph.
//
// Preconditions: d.graphMu must be locked.
func (d *simulator) newExec(g *graph, params *driver.CUDA_GRAPH_INSTANTIATE_PARAMS) (*graphExec, driver.CUresult) {
	if g.capture != nil {
		return nil, driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
	}
	if (g.hasMemory || g.isConditional()) && g.execs > 0 || g.isBody() || g.moved {
		return nil, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	if r := g.checkConditions(params); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	b := newPlanner()
	s := b.shape(g, nil)
	if s == nil {
		params.Result_out = driver.CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	if b.plan.isDenied() {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	x := &graphExec{sim: d, graph: g, shape: s, index: b.index, plan: b.plan, contexts: b.plan.contexts()}
	x.allocs, x.unfreed, x.frees = b.plan.allocs()
	for _, a := range x.allocs {
		a.ref()
	}
	s.hold(g)
	x.held = s.allObjects(nil)
	x.holdConditions(x.plan)
	g.execs++
	return x, driver.CUDA_SUCCESS
}

// CuGraphExecDestroy leaves running launches alone: they hold what they need.
func (d *simulator) CuGraphExecDestroy(h driver.CUgraphExec) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	if d.execs.get(h) == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	d.behindLaunches()
	x := d.execs.take(h)
	if x == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	d.graphMu.Lock()
	x.graph.execs--
	d.graphMu.Unlock()
	x.letGo()
	return driver.CUDA_SUCCESS
}

// letGo releases what the executable holds.
func (x *graphExec) letGo() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.conditions {
		c.unref()
	}
	for _, a := range x.allocs {
		a.unref()
	}
	x.held.release()
}

func (d *simulator) exec(h driver.CUgraphExec) (*graphExec, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	x := d.execs.get(h)
	if x == nil {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	return x, driver.CUDA_SUCCESS
}

// CuGraphUpload has nothing to do: a plan is in host memory.
func (d *simulator) CuGraphUpload(h driver.CUgraphExec, hs driver.CUstream) driver.CUresult {
	if _, r := d.exec(h); r != driver.CUDA_SUCCESS {
		return r
	}
	s, r := d.stream(hs)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	d.behindGraphs()
	return d.refuseCapturing(s)
}

// CuGraphLaunch queues a launch. It invalidates the stream's capture, if it has one,
// as was measured on an H200 with a 13.x driver.
func (d *simulator) CuGraphLaunch(h driver.CUgraphExec, hs driver.CUstream) driver.CUresult {
	s, r := d.stream(hs)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	x, r := d.exec(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.refuseCapturing(s); r != driver.CUDA_SUCCESS {
		return r
	}
	for _, c := range x.contexts {
		if r := c.result(); r != driver.CUDA_SUCCESS {
			return r
		}
	}
	d.behindGraphs()
	s.awaitRoom(true)
	return x.launch(s)
}

// launch queues a run of the current plan, after the previous run.
func (x *graphExec) launch(s *stream) driver.CUresult {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r := x.refuseDangling(); r != driver.CUDA_SUCCESS {
		return r
	}
	if r := x.claim(); r != driver.CUDA_SUCCESS {
		return r
	}
	run := &graphRun{plan: x.plan, allocs: x.allocs, conditions: slices.Clone(x.conditions), objects: x.held.retain()}
	x.launched = true
	for _, c := range run.conditions {
		c.refs.Add(1)
	}
	for _, a := range x.allocs {
		a.ref() // the memory outlives an executable destroyed in flight
	}
	for _, at := range x.plan.awaits {
		run.awaited = append(run.awaited, x.plan.nodes[at].work.(*eventWaitWork).e.get())
	}
	for _, at := range x.plan.records {
		e := x.plan.nodes[at].work.(*eventRecordWork).e
		rec := &record{point: point{&timeline{}, 1}}
		run.records = append(run.records, rec)
		e.set(rec)
	}
	if x.last.tl == &s.timeline || x.last.reached() && !x.sim.check.ordering() {
		x.last = s.enqueue(run)
	} else {
		x.last = s.enqueue(run, x.last)
	}
	for _, rec := range run.records {
		rec.tl.setLaunch(x.last)
	}
	return driver.CUDA_SUCCESS
}

// claim notes what the launch leaves allocated.
//
// Preconditions: x.mu must be locked.
func (x *graphExec) claim() driver.CUresult {
	if !x.autoFree && slices.ContainsFunc(x.unfreed, (*graphAlloc).isLive) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	for _, a := range x.frees {
		if !a.isLive() && !slices.Contains(x.allocs, a) {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
	}
	for _, a := range x.frees {
		a.setLive(false)
	}
	for _, a := range x.allocs {
		a.use()
	}
	for _, a := range x.unfreed { // last: it may be one that was freed and allocated again
		a.setLive(true)
	}
	return driver.CUDA_SUCCESS
}
