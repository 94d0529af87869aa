// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda"
)

// A Capture is an open stream capture that cudago began. An operation recorded
// through [Capture.Record] becomes a named node that keeps its operands alive.
//
// While one is open, this package makes no call that would invalidate it: see
// the package comment. Safe for concurrent use, except that the driver requires
// End on the thread of Begin unless the capture is relaxed.
type Capture struct {
	stream   *cuda.Stream
	thread   int // immutable; the OS thread, if stream is another one in each; else 0
	o        Options
	identity atomic.Pointer[identity] // nil until the driver was asked
	cause    atomic.Pointer[string]   // what has invalidated it; nil if nothing has, or it is not known

	mu        sync.Mutex                      // taken by lock, which keeps the recorder out too
	recorder  Recorder                        // guarded by mu; nil if all is recorded through Record, and once it was asked
	ended     bool                            // guarded by mu
	recorded  map[cuda.NodeHandle]*recordedOp // guarded by mu; through Record
	added     []Added                         // guarded by mu; what the recorder had recorded, in order
	names     map[string]bool                 // guarded by mu
	loose     []*bundle                       // guarded by mu
	memory    []*CapturedMemory               // guarded by mu
	spoiled   error                           // guarded by mu; why there can be no graph
	others    []*cuda.Stream                  // guarded by mu; in which work was recorded too
	greens    map[streamID]bool               // guarded by mu; streams whose green contexts loose holds
	elsewhere []*cuda.Context                 // guarded by mu; other devices of which loose says that there are nodes
}

// An identity tells captures of the driver apart. The number alone is not
// unique: captures into one graph share it.
type identity struct {
	id    uint64
	graph cuda.GraphHandle // the driver's, until End
}

// A recordedOp is what we know of a captured node.
type recordedOp struct {
	name   string
	params any
	bundle *bundle
	memory *allocation // of an alloc node
	child  *Graph      // of a child graph node; of no hierarchy yet
	site   uint32
}

// Begin starts a capture in s. It calls cuStreamBeginCapture, and nothing after
// it that could fail. o is for the [Graph] that End will return.
//
// Concurrency: as [cuda.Stream.BeginCapture] says, the caller must hold the OS
// thread until End unless mode is relaxed.
func Begin(s *cuda.Stream, mode cuda.CaptureMode, o Options) (*Capture, error) {
	c := &Capture{stream: s, o: o, recorded: make(map[cuda.NodeHandle]*recordedOp), names: make(map[string]bool)}
	if isPerThread(s) {
		c.thread = thread()
	}
	if err := captures.begin(c, mode); err != nil {
		return nil, err
	}
	captures.supersede(c)
	if c.thread != 0 { // nobody else can ask the driver for it
		_, _ = c.identify()
	}
	return c, nil
}

// isPerThread reports whether s is another stream of the driver in each thread.
func isPerThread(s *cuda.Stream) bool { return s == s.Context().DefaultStream(cuda.PerThread) }

// isHere reports whether the driver takes the handle of the stream of c for that
// stream in this thread.
func (c *Capture) isHere() bool { return c.thread == 0 || c.thread == thread() }

// identify returns the identity of c. The driver is asked when it is first
// needed, because nothing may fail right after a capture has begun: it would
// stay open.
func (c *Capture) identify() (identity, error) {
	if known := c.identity.Load(); known != nil {
		return *known, nil
	}
	if !c.isHere() {
		return identity{}, nil
	}
	info, err := c.stream.CaptureIdentity()
	if err != nil || info.Status != cuda.CaptureActive {
		return identity{}, err
	}
	known := identity{info.ID, info.Graph}
	c.identity.Store(&known)
	return known, nil
}

// Stream returns the stream in which c was begun.
func (c *Capture) Stream() *cuda.Stream { return c.stream }

// over notes that the driver's capture for c has ended. It returns the bundles
// to release.
func (c *Capture) over() []*bundle {
	c.lock()
	defer c.unlock()
	if c.ended {
		return nil
	}
	c.ended = true
	captures.remove(c)
	c.endMemory(nil)
	return c.bundles()
}

// CaptureOf returns the open capture that s belongs to, as its origin or
// because it waited for an event in it; nil if there is none, or if another
// library began it. While nothing is captured it costs one atomic load.
//
// Errors: an [*cuda.Error] if the driver cannot tell.
func CaptureOf(s *cuda.Stream) (*Capture, error) {
	if live.captures.Load() == 0 {
		return nil, nil
	}
	list := captures.list()
	for _, c := range list {
		if c.stream == s && c.isHere() {
			return c, nil
		}
	}
	// Another thread may be ending the capture that s has joined.
	info, err := s.CaptureIdentity()
	if err != nil || info.Status != cuda.CaptureActive {
		return nil, err
	}
	for _, c := range list {
		// Two drivers can use one handle, two contexts of one driver cannot.
		if c.stream.Context().Driver() != s.Context().Driver() {
			continue
		}
		of, err := c.identify()
		if err != nil && !errors.Is(err, cuda.ErrClosed) {
			return nil, err
		}
		if err == nil && of == (identity{info.ID, info.Graph}) {
			return c, nil
		}
	}
	return nil, nil
}

// An Operation describes a captured operation.
type Operation struct {
	// Name must be unique in the capture. If it is empty the node is named after
	// its kind and number when the capture ends.
	Name string
	// Params are the parameters as [Node.Params] returns them, or nil.
	Params any
	// Operands belong to the capture from the call on; if it fails they are
	// released.
	Operands []Operand
	// Site is what [Node.Site] returns.
	Site uint32

	memory *allocation // of an alloc node
}

// Record runs call, which makes one driver call that enqueues in s, and
// attaches op to the node that this added to the capture. s is the stream of c
// or one that joined it. If the node cannot be determined (the call added none,
// or several), the graph as a whole keeps the operands.
//
// Errors: [ErrNotCapturing] after End; an error of call is returned as it is. The
// operands are released then.
func (c *Capture) Record(s *cuda.Stream, op Operation, call func() error) error {
	var err error
	if op.Operands, err = op.withHandles(); err != nil {
		return err
	}
	if k, ok := op.Params.(cuda.KernelNodeParams); ok {
		op.Params = keepKernel(k)
	}
	b := newBundle(op.Operands)
	err = c.record(s, op, b, call)
	if err != nil {
		b.release()
	}
	return err
}

// withHandles returns the operands, and what keeps the handles of the node valid. They
// are released on an error.
func (op *Operation) withHandles() ([]Operand, error) {
	switch p := op.Params.(type) {
	case cuda.KernelNodeParams:
		return retainKernel(p, op.Operands)
	case cuda.SemaphoreParams:
		return retainSemaphore(p, op.Operands, false)
	}
	return op.Operands, nil
}

// Uses returns all that an operation uses which is captured in s by another library:
// what [Capture.Record] keeps of one. Its operands are released on an error.
func (op *Operation) Uses(s *cuda.Stream) ([]Operand, error) {
	operands, err := op.withHandles()
	if err != nil {
		return nil, err
	}
	if release := s.HoldGreenContext(); release != nil {
		operands = append(slices.Clip(operands), Operand{Reason: "green context", Retainer: greenHold(release)})
	}
	return operands, nil
}

// record holds c.mu across the driver calls: the driver does not synchronize
// the graph under capture, and two streams of one capture share it.
func (c *Capture) record(s *cuda.Stream, op Operation, b *bundle, call func() error) error {
	c.lock()
	defer c.unlock()
	if err := b.mayUse(c); err != nil {
		return err
	}
	_, err := c.recordLocked(s, &op, b, call)
	return err
}

// recordLocked returns the node, or 0 if it cannot be determined. call may still
// set the parameters in op.
//
// Preconditions: c.mu is held.
func (c *Capture) recordLocked(s *cuda.Stream, op *Operation, b *bundle, call func() error) (cuda.NodeHandle, error) {
	if c.ended {
		return 0, ErrNotCapturing
	}
	if op.Name != "" && c.names[op.Name] {
		return 0, badValue("name", "must be unique in the capture, and %q is another node of it", op.Name)
	}
	before, err := s.CaptureInfo()
	if err != nil {
		return 0, err
	}
	if err := call(); err != nil {
		return 0, c.explainFreed(err, op.Params)
	}
	// The operation is in the capture now: b is kept from here on, whatever
	// happens.
	c.noteStream(s)
	c.holdGreenContext(s)
	node := addedNode(before.Dependencies, dependencies(s))
	if node == 0 || c.recorded[node] != nil {
		c.loose = appendHeld(c.loose, b)
		c.noteUses(s, 0, b)
		return 0, nil
	}
	c.recorded[node] = &recordedOp{name: op.Name, params: op.Params, bundle: b, memory: op.memory, site: op.Site}
	c.noteUses(s, node, b)
	if op.Name != "" {
		c.names[op.Name] = true
	}
	return node, nil
}

// dependencies returns those of the next operation in s, or none if the driver
// does not say.
func dependencies(s *cuda.Stream) []cuda.NodeHandle {
	info, err := s.CaptureInfo()
	if err != nil {
		return nil
	}
	return info.Dependencies
}

// addedNode returns the one node that is new among the stream's dependencies, or
// 0: a captured operation replaces them with its own node.
func addedNode(before, after []cuda.NodeHandle) cuda.NodeHandle {
	var added []cuda.NodeHandle
	for _, n := range after {
		if !slices.Contains(before, n) {
			added = append(added, n)
		}
	}
	if len(added) != 1 {
		return 0
	}
	return added[0]
}

// Keep makes the captured graph as a whole keep operands alive.
//
// Errors: [cuda.ErrClosed] after End; the operands are released then.
func (c *Capture) Keep(operands []Operand) error {
	b := newBundle(operands)
	err := c.keep(b)
	if err != nil {
		b.release()
	}
	return err
}

func (c *Capture) keep(b *bundle) error {
	c.lock()
	defer c.unlock()
	if c.ended {
		return &cuda.ClosedError{What: "capture"}
	}
	if err := b.mayUse(c); err != nil {
		return err
	}
	c.loose = appendHeld(c.loose, b)
	return nil
}

// End ends the capture and returns its graph. It calls cuStreamEndCapture and
// asks the driver for the nodes and edges. A recorder may have kept the nodes: see
// [Recorder].
//
// Errors: as for [cuda.Stream.EndCapture]. If the capture was invalidated, all
// operands are released. If the driver does not report that the capture is
// over, nothing changes and End can be called again; for example after
// [cuda.ErrorStreamCaptureWrongThread], by the thread that began the capture.
func (c *Capture) End() (*Graph, error) { return c.complete(false) }

func (c *Capture) complete(discard bool) (*Graph, error) {
	g, dropped, err := c.end(discard)
	if err == nil {
		return g, nil
	}
	releaseAll(dropped)
	if g != nil {
		g.watch = nil // the owner has not been told of it
		err = errors.Join(err, g.Close())
	}
	return nil, err
}

// Abort ends the capture and discards what was captured. Errors of the capture
// itself are ignored. A capture that cannot be ended stays open, and the error
// says why: Abort can be called again, by the thread that began it if the error
// is [cuda.ErrorStreamCaptureWrongThread].
func (c *Capture) Abort() error {
	g, err := c.complete(true)
	if err == nil {
		g.watch = nil // the owner never gets it, and may be unable to hear of its end now
		return g.Close()
	}
	if c.IsEnded() {
		return nil
	}
	return err
}

// IsEnded reports whether c has ended: by End or Abort, or because the driver
// reported in one of these that the capture no longer exists.
func (c *Capture) IsEnded() bool {
	c.lock()
	defer c.unlock()
	return c.ended
}

// end returns what the caller must release or close once it holds no lock.
func (c *Capture) end(discard bool) (g *Graph, dropped []*bundle, err error) {
	c.lock()
	defer c.unlock()
	if c.ended {
		return nil, nil, &cuda.ClosedError{What: "capture"}
	}
	if !c.isHere() { // the driver would end one of this thread
		const why = "the per-thread default stream of another thread was captured: that thread ends it"
		return nil, nil, c.stream.Context().Failure("cuStreamEndCapture", int32(cuda.ErrorStreamCaptureWrongThread), why)
	}
	unjoined := c.unjoined()
	handle, err := c.stream.EndCapture()
	if err != nil {
		err = c.explainInvalidated(explainUnjoined(err, unjoined))
		if c.maybeOpen() {
			return nil, nil, err
		}
		c.ended = true
		captures.remove(c)
		c.endMemory(nil)
		return nil, c.bundles(), err
	}
	c.ended = true
	captures.remove(c)
	g = adopt(c.stream.Context(), handle, c.o)
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	err = c.spoiled
	if err == nil {
		err = c.fill(g, discard)
	}
	if err != nil {
		// g releases what it took over; the rest is dropped here.
		c.endMemory(nil)
		return g, c.bundles(), err
	}
	if discard {
		c.endMemory(nil)
	} else {
		c.endMemory(g.h)
	}
	g.watch.notify(g.bundles(), nil)
	return g, nil, nil
}

// maybeOpen reports whether the driver may still be capturing for c, or does
// not say. A closed or broken stream captures nothing.
func (c *Capture) maybeOpen() bool {
	st, err := c.stream.IsCapturing()
	if err != nil {
		return !isGone(err) && !errors.Is(err, cuda.ErrClosed)
	}
	return st != cuda.CaptureNone
}

// bundles removes and returns the bundles that c holds.
//
// Preconditions: c.mu is held.
func (c *Capture) bundles() []*bundle {
	c.take()
	list := c.loose
	for _, n := range slices.Sorted(maps.Keys(c.recorded)) {
		list = append(list, c.recorded[n].bundles()...)
	}
	for i := range c.added {
		list = append(list, newBundle(c.added[i].Operands))
	}
	c.loose, c.recorded, c.added = nil, nil, nil
	return list
}

// fill makes nodes of what the driver captured, or leaves them to the recorder,
// and moves the bundles of c to them and to g. It asks the driver first, so that
// on an error c has all bundles.
//
// Preconditions: c.mu and g.h.mu are held.
func (c *Capture) fill(g *Graph, discard bool) error {
	nodes, edges, err := g.ask()
	if err != nil {
		return err
	}
	if !discard && c.leave(nodes, edges) {
		g.loose, c.loose = c.loose, nil
		return nil
	}
	c.take()
	left, err := g.read(nodes, edges, c.added)
	if err != nil {
		return err
	}
	c.added = nil
	c.nameNodes(g)
	g.loose, c.loose = appendHeld(c.loose, left...), nil
	for _, n := range slices.Sorted(maps.Keys(c.recorded)) {
		g.loose = appendHeld(g.loose, c.recorded[n].bundles()...) // its node was removed by other code
	}
	c.recorded = nil
	return nil
}

// nameNodes gives the nodes of g the names and parameters recorded for them.
// Given names come first, so that an automatic one cannot take them.
//
// Preconditions: c.mu and g.h.mu are held.
func (c *Capture) nameNodes(g *Graph) {
	for _, n := range g.all() {
		if len(c.recorded) == 0 {
			break
		}
		op := c.recorded[n.handle]
		if op == nil {
			continue
		}
		delete(c.recorded, n.handle)
		if n.bundle != nil { // the recorder has it too, which cannot be
			g.loose = append(g.loose, n.bundle)
		}
		n.name, n.params, n.bundle, n.memory = op.name, op.params, op.bundle, op.memory
		n.SetSite(op.site)
		if n.child = op.child; n.child != nil {
			n.child.settle(g.h)
		}
		if n.name != "" {
			g.names()[n.name] = n
		}
	}
	g.nameRest()
}
