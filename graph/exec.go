// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/finalize"
)

// ExecOptions are the options of [Graph.Instantiate]. The zero value is right
// for an executable that only Go launches.
type ExecOptions struct {
	// Flags are cuda.InstantiateXxx.
	Flags uint64
	// Upload, if not nil, is the stream to which the executable is uploaded.
	Upload *cuda.Stream
	// OnBundle is as in [Options]. What an update has replaced is reported as
	// removed at once, although a launch under way still keeps it alive: that
	// hold is not the owner's.
	OnBundle func(list []Operand, held bool)
	// Uses returns the launches made by [Exec.Handle]: one Use for each stream,
	// with the latest position. Close and updates call it, on their goroutine,
	// without the lock of the executable's state; their caller keeps launches
	// by handle out meanwhile. Nil: nobody launches by handle.
	Uses func() []Use
	// Launches returns how many such launches have been started; it is called
	// as Uses is. Operands that no launch has used can then be released at
	// once. Nil: unknown, if Uses is not nil.
	Launches func() uint64
	// OnReleased receives the retainers that the executable no longer holds in
	// any way: each that OnBundle reported as removed, once no launch under
	// way can use it. It runs with no lock held, on any goroutine, before
	// Release of those that have no other holder, and under the rules of
	// [Retainer].
	OnReleased func([]Retainer)
	// Nothing is a C function of type void (*)(void *userData) that does
	// nothing, for host nodes that are disabled. Zero: host nodes cannot be.
	Nothing uintptr
	// Quiet makes Close and updates record no marks, which are driver calls. It
	// is for callers that hold something that device work may need, like the
	// GIL: a record can wait for a call that waits for such work. The reaper
	// marks instead; where it may not (see [Line.Expose]), the caller does so
	// later with [Line.Prove].
	Quiet bool
	// Reaper destroys the executable. Nil: the one that [Reaper] returns.
	Reaper *finalize.Reaper
}

// An Exec is an executable graph. It keeps the operands alive that the graph
// had when it was instantiated, or that an update has put in their place, until
// it is closed and its last launch has completed.
//
// Close it when done. Safe for concurrent use.
type Exec struct {
	h      *hierarchy
	source *Graph // immutable; what x was made of
	handle cuda.ExecHandle
	o      ExecOptions
	watch  watcher
	reaper *finalize.Reaper
	nodes  []*ExecNode // immutable
	edited bool        // immutable; of the graph, when x was made
	// allocates lists where the nodes allocate, and visits the other contexts in which
	// there are nodes, or memory of nodes. Both are immutable.
	allocates, visits []*cuda.Context
	// byName is immutable. Most executables are never asked for a node, so the
	// first who asks waits for the table.
	byName func() map[string]*ExecNode

	// gate keeps updates and Close apart from launches, and launching keeps
	// launches apart from each other: the driver does neither. A launch can
	// wait there for a full queue, so callers must not hold the GIL.
	gate      gate
	launching sync.Mutex

	mu       sync.Mutex
	closed   bool      // guarded by mu; changes only while the gate is shut
	extra    []held    // guarded by mu; bundles that belong to no updatable node
	spare    []*bundle // guarded by mu; held, and not reported as retained: see take
	uses     []Use     // guarded by mu; our own launches, one for each line
	launches uint64    // guarded by mu; ours, started so far
}

// Instantiate makes an executable of g as it is now. The two share the present
// operands; later changes of g do not affect the executable. It calls
// cuGraphInstantiateWithParams.
//
// Lifetime: g may be closed right after. The driver graph then lives on, without
// operands, until the executable is closed: the driver needs it for updates.
//
// It blocks while another thread waits for a full launch queue, and so do other
// calls on g meanwhile: see [Graph.Busy].
//
// Errors: [cuda.ErrClosed]; an [*cuda.ArgumentError] for an embedded graph; an
// [*cuda.InstantiateError] where the driver says why; otherwise an
// [*cuda.Error]. Cycles are detected here.
func (g *Graph) Instantiate(o ExecOptions) (*Exec, error) {
	defer g.Announce()()
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	if err := g.usable("be instantiated"); err != nil {
		return nil, err
	}
	calls, err := g.unknownCalls(&o)
	if err != nil {
		return nil, err
	}
	visits, err := g.visit()
	if err != nil {
		return nil, err
	}
	g.sendNames()
	var handle cuda.ExecHandle
	// Relaxed: instantiating invalidates global captures, also those of other threads.
	g.h.ctx.Driver().Relaxed(func() {
		if o.Upload != nil {
			handle, err = g.h.ctx.InstantiateUploading(g.h.handle, o.Flags, o.Upload)
		} else {
			handle, err = g.h.ctx.Instantiate(g.h.handle, o.Flags)
		}
	})
	if err != nil {
		endVisits(visits)
		return nil, g.explainInstantiate(err)
	}
	x := g.newExec(handle, o, calls)
	x.visits = visits
	return x, nil
}

// explainInstantiate adds to a refusal which conditions have no node; or that the
// graph can have one executable, and has it.
//
// Preconditions: g.h.mu is held.
func (g *Graph) explainInstantiate(err error) error {
	var call *cuda.Error
	var why *cuda.InstantiateError
	unused := g.h.unusedConditions()
	refused := errors.As(err, &call) && call.Result == cuda.ErrorNotSupported
	switch {
	case unused != "" && errors.As(err, &why) && (refused || why.HasUnusedCondition()):
		why.Reason = unused + ": add one that it controls"
	case !refused || g.h.execs.Load()+g.h.ending.Load() == 0:
	case len(g.h.memory) > 0 || g.frees():
		call.Detail = "the graph allocates or frees memory, " + g.h.oneAtATime()
	case g.hasConditional():
		call.Detail = "the graph has conditional nodes, " + g.h.oneAtATime()
	}
	return err
}

// oneAtATime says what to do about the executable that keeps a graph from having
// another one.
func (h *hierarchy) oneAtATime() string {
	if h.execs.Load() > 0 {
		return "so that it can have one executable at a time: close the other one first"
	}
	return "so that it can have one executable at a time, and launches of the one that was closed are under way: " +
		"wait for them first, as with stream.sync()"
}

// sendNames makes the driver use our node names in its reports.
//
// Preconditions: g.h.mu is held.
func (g *Graph) sendNames() {
	handles, names := make([]cuda.NodeHandle, len(g.all())), make([]string, len(g.all()))
	for i, n := range g.all() {
		handles[i], names[i] = n.handle, n.name
		for _, b := range n.bodies {
			b.sendNames()
		}
	}
	g.h.ctx.NameNodes(handles, names)
}

// newExec copies the tables of g and retains its bundles.
//
// Preconditions: g.h.mu is held.
func (g *Graph) newExec(handle cuda.ExecHandle, o ExecOptions, calls map[*Node]cuda.HostParams) *Exec {
	x := &Exec{
		h: g.h, source: g, handle: handle, o: o, watch: o.OnBundle, reaper: o.Reaper,
	}
	x.byName = sync.OnceValue(x.nameNodes)
	if x.reaper == nil {
		x.reaper = Reaper()
	}
	x.edited, x.allocates = g.h.edited, g.h.contexts()
	x.addNodes(g, "")
	if len(calls) > 0 {
		for _, n := range x.nodes {
			n.call = calls[n.of]
		}
	}
	g.eachLoose("", func(path string, b *bundle) { x.hold(nil, path, b) })
	g.h.holders++
	g.h.execs.Add(1)
	live.execs.Add(1)
	x.watch.notify(x.bundles(), nil)
	return x
}

// addNodes adds the nodes of g and of its bodies: the driver can update those
// too.
//
// Preconditions: g.h.mu is held.
func (x *Exec) addNodes(g *Graph, prefix string) {
	made := make([]ExecNode, len(g.all())) // they live as long as x
	x.nodes = slices.Grow(x.nodes, len(made))
	for i, n := range g.all() {
		e := &made[i]
		*e = ExecNode{
			x: x, of: n, def: n.handle, kind: n.kind, name: prefix + n.name, edges: n.edges(),
			params: n.params, bundle: n.bundle.retain(), version: n.version, child: n.child,
		}
		x.nodes = append(x.nodes, e)
		if n.child != nil {
			x.holdInside(e, n.child)
			continue
		}
		n.eachInner(prefix, func(prefix string, body *Graph) { x.addNodes(body, prefix) })
	}
}

func (x *Exec) nameNodes() map[string]*ExecNode {
	named := make(map[string]*ExecNode, len(x.nodes))
	for _, n := range x.nodes {
		named[n.name] = n
	}
	return named
}

// hold holds a bundle that is not of an updatable node, but perhaps of the graph in
// one.
func (x *Exec) hold(in *ExecNode, path string, b *bundle) {
	x.extra = append(x.extra, held{path, b.retain(), in})
}

// holdInside holds what a graph that n embeds holds.
func (x *Exec) holdInside(n *ExecNode, child *Graph) {
	child.eachBundle(n.name+"/", func(path string, b *bundle) { x.hold(n, path, b) })
}

// bundles lists the bundles that x holds.
//
// Preconditions: x.mu is held, or nobody else knows x yet.
func (x *Exec) bundles() []*bundle {
	var list []*bundle
	for _, n := range x.nodes {
		if n.bundle != nil {
			list = append(list, n.bundle)
		}
	}
	return append(list, x.loose()...)
}

// Context returns the context that x belongs to.
func (x *Exec) Context() *cuda.Context { return x.h.ctx }

// Handle returns the CUgraphExec, for launches made elsewhere. Whoever launches
// by it must report that in Uses of [ExecOptions], and keep launches, updates
// and Close apart. It must not be launched after Close.
func (x *Exec) Handle() cuda.ExecHandle { return x.handle }

// Busy reports whether a call may be inside the driver for which an update or
// Close would wait: see [Graph.Busy], which it includes.
func (x *Exec) Busy() bool { return x.h.busy.Load() > 0 || x.gate.busy() }

// Nodes returns the nodes, in order of their creation in the graph; those of
// bodies follow their node, with its name and a slash before theirs.
func (x *Exec) Nodes() []*ExecNode { return append([]*ExecNode(nil), x.nodes...) }

// Node returns the node with the given name, or nil.
func (x *Exec) Node(name string) *ExecNode { return x.byName()[name] }

// Retained returns what the next launch of x keeps alive.
func (x *Exec) Retained() []Retained {
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []Retained
	for _, n := range x.nodes {
		list = n.bundle.describe(list, n.name)
	}
	for _, h := range x.extra {
		list = h.b.describe(list, h.path)
	}
	return list
}

// Retainers returns what x holds now, as reported to OnBundle.
func (x *Exec) Retainers() []Retainer {
	x.mu.Lock()
	defer x.mu.Unlock()
	return retainersOf(x.bundles())
}

// EachHeld visits what x holds now, as reported to OnBundle, with a lock of x
// held: see there.
func (x *Exec) EachHeld(visit func(list []Operand)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, b := range x.bundles() {
		b.visit(visit)
	}
}

// IsClosed reports whether Close was called.
func (x *Exec) IsClosed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.closed
}
