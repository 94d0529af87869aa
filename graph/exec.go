// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"sync"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/finalize"
)

// ExecOptions say how [Graph.Instantiate] makes an executable. The zero value
// is right for one that only Go launches.
type ExecOptions struct {
	// Flags are cuda.InstantiateXxx.
	Flags uint64
	// Upload, if not nil, is the stream to which the executable is uploaded.
	Upload *cuda.Stream
	// OnBundles is as in [Options]. What an update has replaced is removed at
	// once, although a launch under way still keeps it alive: that hold is not
	// the owner's.
	OnBundles func(add, remove []Retainer)
	// Uses returns what was launched by [Exec.Handle]: one Use for each stream,
	// with the latest position. It is called by Close and by updates, on their
	// goroutine, with no lock of the executable's state held; the caller of those
	// keeps launches by handle out meanwhile. Nil: nobody launches by handle.
	Uses func() []Use
	// Launches returns how many such launches have been started; it is called as
	// Uses is. It lets operands go at once that no launch has used. Nil: unknown,
	// if Uses is not nil.
	Launches func() uint64
	// OnReleased is told which retainers the executable has let go for good: each
	// that OnBundles was told removed, once no launch under way can use it. It
	// runs with no lock held, on any goroutine, before Release of those that
	// nobody else holds, and under the rules of [Retainer].
	OnReleased func([]Retainer)
	// Quiet keeps Close and updates from the driver: they mark nothing that is in
	// flight. For callers that hold what work on the device may need, like the
	// GIL, since a record can wait for a call that waits for such work. The reaper
	// marks for them, and where it may not, see [Line.Expose], the caller does so
	// later with [Line.Prove].
	Quiet bool
	// Reaper destroys the executable. Nil: the one that [Reaper] returns.
	Reaper *finalize.Reaper
}

// An Exec is an executable graph. It keeps alive what the graph held when it
// was instantiated, or what an update has put in its place, until it is closed
// and its last launch has ended.
//
// Close it when done. Safe for concurrent use.
type Exec struct {
	h      *hierarchy
	handle cuda.ExecHandle
	o      ExecOptions
	watch  watcher
	reaper *finalize.Reaper
	nodes  []*ExecNode          // immutable
	byName map[string]*ExecNode // immutable

	// gate keeps updates and Close apart from launches, launching one launch from
	// the other: the driver does neither. A launch can wait in there for a full
	// queue, so callers must not hold the GIL.
	gate      gate
	launching sync.Mutex

	mu       sync.Mutex
	closed   bool   // guarded by mu; changes only while the gate is shut
	extra    []held // guarded by mu; bundles of no updatable node
	uses     []Use  // guarded by mu; our own launches, one for each line
	launches uint64 // guarded by mu; ours, started so far
}

// Instantiate makes an executable of g as it is now. The two share the operands
// of this moment; later changes of g do not reach the executable. It calls
// cuGraphInstantiateWithParams.
//
// Lifetime: g may be closed right after. The driver graph then lives on, without
// operands, until the executable is closed: the driver needs it for updates.
//
// It blocks while another thread waits for a full launch queue, and calls on g
// with it: see [Graph.Busy].
//
// Errors: [cuda.ErrClosed]; an [*cuda.ArgumentError] for an embedded graph; an
// [*cuda.InstantiateError] where the driver says why; otherwise an
// [*cuda.Error]. A graph with a cycle is found out here.
func (g *Graph) Instantiate(o ExecOptions) (*Exec, error) {
	defer g.Announce()()
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	if err := g.usable("be instantiated"); err != nil {
		return nil, err
	}
	g.tellNames()
	var handle cuda.ExecHandle
	var err error
	// Relaxed: instantiating spoils global captures, also those of other threads.
	g.h.ctx.Driver().Relaxed(func() {
		if o.Upload != nil {
			handle, err = g.h.ctx.InstantiateUploading(g.h.handle, o.Flags, o.Upload)
		} else {
			handle, err = g.h.ctx.Instantiate(g.h.handle, o.Flags)
		}
	})
	if err != nil {
		return nil, err
	}
	return g.newExec(handle, o), nil
}

// tellNames has the driver use our names in what it says about the executable.
//
// Preconditions: g.h.mu is held.
func (g *Graph) tellNames() {
	handles, names := make([]cuda.NodeHandle, len(g.nodes)), make([]string, len(g.nodes))
	for i, n := range g.nodes {
		handles[i], names[i] = n.handle, n.name
		for _, b := range n.bodies {
			b.tellNames()
		}
	}
	g.h.ctx.NameNodes(handles, names)
}

// newExec copies the tables of g and retains its bundles.
//
// Preconditions: g.h.mu is held.
func (g *Graph) newExec(handle cuda.ExecHandle, o ExecOptions) *Exec {
	x := &Exec{
		h: g.h, handle: handle, o: o, watch: o.OnBundles, reaper: o.Reaper,
		byName: make(map[string]*ExecNode, len(g.nodes)),
	}
	if x.reaper == nil {
		x.reaper = Reaper()
	}
	x.addNodes(g, "")
	for _, b := range g.loose {
		x.hold("", b)
	}
	g.h.holders++
	live.execs.Add(1)
	x.watch.tell(x.bundles(), nil)
	return x
}

// addNodes adds those of bodies too: the driver can update them.
//
// Preconditions: g.h.mu is held.
func (x *Exec) addNodes(g *Graph, prefix string) {
	for _, n := range g.nodes {
		e := &ExecNode{
			x: x, of: n, def: n.handle, kind: n.kind, name: prefix + n.name, params: n.params, bundle: n.bundle.retain(),
		}
		x.nodes = append(x.nodes, e)
		x.byName[e.name] = e
		if n.child != nil {
			n.child.eachBundle(e.name+"/", x.hold)
			continue
		}
		n.eachInner(prefix, func(prefix string, body *Graph) { x.addNodes(body, prefix) })
	}
}

func (x *Exec) hold(path string, b *bundle) {
	x.extra = append(x.extra, held{path, b.retain()})
}

// bundles lists what x holds.
//
// Preconditions: x.mu is held, or nobody else knows x yet.
func (x *Exec) bundles() []*bundle {
	var list []*bundle
	for _, n := range x.nodes {
		if n.bundle != nil {
			list = append(list, n.bundle)
		}
	}
	for _, h := range x.extra {
		list = append(list, h.b)
	}
	return list
}

// Context returns the context that x belongs to.
func (x *Exec) Context() *cuda.Context { return x.h.ctx }

// Handle returns the CUgraphExec, for launches made elsewhere. Who launches by
// it must report that by Uses of [ExecOptions], and keep launches, updates and
// Close apart. It must not be launched after Close.
func (x *Exec) Handle() cuda.ExecHandle { return x.handle }

// Busy reports whether a call may be inside the driver for which an update or
// Close would wait: see [Graph.Busy], which it includes.
func (x *Exec) Busy() bool { return x.h.busy.Load() > 0 || x.gate.busy() }

// Nodes returns the nodes, in order of their creation in the graph; those of
// bodies follow their node, with its name and a slash before theirs.
func (x *Exec) Nodes() []*ExecNode { return append([]*ExecNode(nil), x.nodes...) }

// Node returns the node with the given name, or nil.
func (x *Exec) Node(name string) *ExecNode { return x.byName[name] }

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

// Retainers returns what x holds right now, as OnBundles has told it.
func (x *Exec) Retainers() []Retainer {
	x.mu.Lock()
	defer x.mu.Unlock()
	return retainersOf(x.bundles())
}

// IsClosed reports whether Close was called.
func (x *Exec) IsClosed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.closed
}
