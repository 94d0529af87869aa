// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
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
	// Busy reports whether someone who launches the executable by its handle is
	// inside cuGraphLaunch right now. Nothing is concluded about what is in a
	// stream while it is true. A launch need not be reported if a lock of its
	// launcher keeps updates and Close out meanwhile, as the GIL does for those
	// who hold it throughout. It must not block.
	Busy func() bool
	// Launches returns how many such launches have been started, each counted
	// before it enters the driver, and after Busy became true for it. It lets
	// operands go at once that no launch has used. Nil: unknown. It must not
	// block.
	Launches func() uint64
	// OnForget is told that the executable will not mention s to the driver
	// again, once s was closed. A launcher that remembers having called
	// [Exec.NoteStream] forgets it then: the handle will be another stream's.
	// It runs with a lock held, under the rules of OnBundles.
	OnForget func(s *cuda.Stream)
	// OnReleased is told which retainers the executable has let go for good: each
	// that OnBundles was told removed, once no launch under way can use it. It
	// runs with no lock held, on any goroutine, before Release of those that
	// nobody else holds, and under the rules of [Retainer].
	OnReleased func([]Retainer)
	// Reaper waits for the device. Nil: the one that [Reaper] returns.
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

	// api orders the driver calls on the executable, which the driver does not.
	// A launch can wait in it for a full queue: callers must not hold the GIL.
	api sync.Mutex

	mu       sync.Mutex
	closed   bool      // guarded by mu
	extra    []held    // guarded by mu; bundles of no updatable node
	streams  []*noted  // guarded by mu; those to wait for
	leaving  []*noted  // guarded by mu; no longer in streams, to be waited for once
	marks    []mark    // guarded by mu; launches that had to be marked one by one
	marked   uint64    // guarded by mu; marks made so far
	inDriver int       // guarded by mu; our launches and updates inside the driver
	launches uint64    // guarded by mu; ours, started so far
	byHandle bool      // guarded by mu; someone launches by handle
	retired  []*bundle // guarded by mu; replaced, and not yet in a batch
	queued   bool      // guarded by mu; the reaper steps x

	retirement retirement
}

// Instantiate makes an executable of g as it is now. The two share the operands
// of this moment; later changes of g do not reach the executable. It calls
// cuGraphInstantiateWithParams.
//
// Lifetime: g may be closed right after. The driver graph then lives on, without
// operands, until the executable is closed: the driver needs it for updates.
//
// Errors: [cuda.ErrClosed]; an [*cuda.ArgumentError] for an embedded graph; an
// [*cuda.InstantiateError] where the driver says why; otherwise an
// [*cuda.Error]. A graph with a cycle is found out here.
func (g *Graph) Instantiate(o ExecOptions) (*Exec, error) {
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
// it must call [Exec.NoteStream] before the first launch on a stream, and
// report through Busy and Launches of [ExecOptions]. It must not be launched
// after Close.
func (x *Exec) Handle() cuda.ExecHandle { return x.handle }

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

var errClosedExec = &cuda.ClosedError{What: "graph executable"}

// errCapturing: on CUDA 13 drivers cuGraphLaunch into a capturing stream fails
// and spoils the capture, so it is refused before the driver sees it.
var errCapturing = errors.New("a graph executable cannot be launched into a stream that is capturing; " +
	"embed its graph as a child graph node instead")

// Launch launches x on s. It calls cuGraphLaunch.
//
// Stream-ordered on s, and after earlier launches of x; returns before
// completion, but blocks while the driver's queue is full. Not allowed while s
// is capturing.
//
// Errors: [cuda.ErrClosed] if x or s is closed; otherwise an [*cuda.Error].
func (x *Exec) Launch(s *cuda.Stream) error {
	// For the whole call: s may be the per-thread default stream.
	leave, err := s.Context().Enter()
	if err != nil {
		return err
	}
	defer leave()
	if st, err := s.IsCapturing(); err != nil {
		return err
	} else if st != cuda.CaptureNone {
		return errCapturing
	}
	mark := needsMark(s)
	if !mark {
		if err := x.note(s, false); err != nil {
			return err
		}
	}
	x.api.Lock()
	defer x.api.Unlock()
	if err := x.enterDriver(true); err != nil {
		return err
	}
	defer x.leaveDriver()
	if mark {
		return x.launchMarked(s)
	}
	return x.h.ctx.ExecLaunch(x.handle, s)
}

// enterDriver announces a driver call of ours, which the reaper respects, and
// fails once x is closed.
func (x *Exec) enterDriver(launch bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return errClosedExec
	}
	x.inDriver++
	if launch {
		x.launches++
	}
	return nil
}

func (x *Exec) leaveDriver() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.inDriver--
}

// Upload readies x on the device, so that its first launch is as fast as later
// ones. It calls cuGraphUpload.
//
// Stream-ordered on s; returns before completion.
func (x *Exec) Upload(s *cuda.Stream) error {
	x.api.Lock()
	defer x.api.Unlock()
	if err := x.enterDriver(false); err != nil {
		return err
	}
	defer x.leaveDriver()
	return x.h.ctx.ExecUpload(x.handle, s)
}

// Close ends the use of x: it cannot be launched any more, and launches under
// way run to their end. After the last of them the executable is destroyed and
// its operands are released, by the reaper; where it was never launched, here.
// Closing twice is fine. Does not block.
//
// Someone who launches by [Exec.Handle] must have stopped starting launches;
// one that is inside the driver is waited for, by Busy.
func (x *Exec) Close() error {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return nil
	}
	x.closed = true
	bundles := x.bundles()
	for _, n := range x.nodes {
		n.bundle = nil
	}
	x.extra = nil
	x.watch.tell(nil, bundles)
	for _, n := range x.streams {
		watching.remove(n.s, x)
	}
	x.leaving, x.streams = append(x.leaving, x.streams...), nil
	idle := x.isIdle()
	if !idle {
		x.retired = append(x.retired, bundles...)
		x.queue()
	}
	x.mu.Unlock()

	if !idle {
		return nil
	}
	var err error
	var refused bool
	x.h.ctx.Driver().Relaxed(func() { refused, err = x.destroy() })
	if refused {
		x.mu.Lock()
		x.queue() // the reaper asks again
		x.mu.Unlock()
	}
	x.letGo(bundles)
	return err
}

// isIdle reports whether nothing of x can be running and nothing waits: then
// the goroutine that changes x can release, without the reaper.
//
// Preconditions: x.mu is held.
func (x *Exec) isIdle() bool {
	return x.neverLaunched() && x.inDriver == 0
}

// busy reports whether a launch or an update may be inside the driver.
//
// Preconditions: x.mu is held.
func (x *Exec) busy() bool {
	return x.inDriver > 0 || (x.o.Busy != nil && x.o.Busy())
}

// neverLaunched reports whether no launch was ever started, or all have ended
// and were forgotten.
//
// Preconditions: x.mu is held.
func (x *Exec) neverLaunched() bool {
	return !x.queued && len(x.streams)+len(x.leaving)+len(x.marks) == 0 && (x.o.Busy == nil || !x.o.Busy())
}

// started returns how many launches were started so far; unknown where someone
// launches by handle and does not count.
//
// Preconditions: x.mu is held.
func (x *Exec) started() uint64 {
	if x.o.Launches != nil {
		return x.launches + x.o.Launches()
	}
	if x.byHandle || x.o.Busy != nil {
		return unknown
	}
	return x.launches
}

// unknown is a count of launches that equals no other.
const unknown = ^uint64(0)

// destroy gives the driver's objects back. Nothing of x is running. If it was
// refused because of a capture, it has done nothing.
//
// Preconditions: relaxed capture mode; x is closed and not queued; x.mu is not
// held.
func (x *Exec) destroy() (refused bool, err error) {
	x.retirement.trim(0)
	err = x.h.ctx.ExecDestroy(x.handle)
	if isCaptureRefusal(err) {
		return true, nil
	}
	live.execs.Add(-1)
	return false, errors.Join(err, x.h.drop())
}

// letGo ends x's hold of bundles: no launch can use them any more.
//
// Preconditions: no mutex of this package is held.
func (x *Exec) letGo(bundles []*bundle) {
	if x.o.OnReleased != nil && len(bundles) > 0 {
		x.o.OnReleased(retainersOf(bundles))
	}
	releaseAll(bundles)
}
