// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"sync/atomic"

	"github.com/cudago/cudago/cuda"
)

// A Retainer keeps one object alive for a graph: a Python object, a buffer
// export, an allocation.
type Retainer interface {
	// Release ends that. It is called exactly once, on any goroutine, with no
	// lock of this package held. It must not panic, nor wait for anything that
	// may wait for a graph call: it should queue its work.
	Release()
}

// An Operand is something that a node reads, writes or calls.
type Operand struct {
	// Name is the operand's role in the node: "src", "dst", "parameter 0", as
	// in errors. An operand without a name is kept alive, but not reported.
	Name string
	// Object is the user's object, for [Retained]. It may be nil.
	Object any
	// NBytes is the size of what is retained, in bytes; zero if unknown.
	NBytes uint64
	// Reason says why it is retained: "memcpy", "kernel".
	Reason string
	// Retainer keeps the operand alive. Nil if nothing can: a bare address.
	Retainer Retainer
	// Memory is set if the operand is in memory that a capture allocates.
	Memory *CapturedMemory
}

// Retained describes one operand that a graph or an executable keeps alive.
type Retained struct {
	// Node is the name of the node. In an embedded graph or a body, it is
	// preceded by the outer node's name and a slash: "loop/step", or
	// "choose[1]/step" if there are several bodies. It is empty for an operand
	// of a capture whose node could not be determined.
	Node    string
	Operand string
	Object  any
	NBytes  uint64
	Reason  string
}

// A bundle holds the operands of one version of one node's parameters. It never
// changes. Each graph, clone, parent and executable that can reach it counts as
// one holder, and so does a retirement while a launch that uses it may run. The
// nil bundle is the empty one.
type bundle struct {
	operands []Operand
	holders  atomic.Int64
}

// newBundle takes over operands; the caller is the first holder.
func newBundle(operands []Operand) *bundle {
	if len(operands) == 0 {
		return nil
	}
	return new(bundle).take(operands)
}

// take is newBundle, with operands, for a bundle that was made.
func (b *bundle) take(operands []Operand) *bundle {
	b.operands = operands
	b.holders.Store(1)
	live.bundles.Add(1)
	return b
}

// retain adds a holder. The caller must be one, or hold the lock of one.
func (b *bundle) retain() *bundle {
	if b != nil && b.holders.Add(1) <= 1 {
		panic("BUG: a bundle was retained after its last holder had gone")
	}
	return b
}

// release removes a holder; the last one's goroutine releases the operands.
//
// Preconditions: no mutex of this package is held.
func (b *bundle) release() {
	if b == nil {
		return
	}
	n := b.holders.Add(-1)
	if n < 0 {
		panic("BUG: a bundle was released more often than retained")
	}
	if n > 0 {
		return
	}
	live.bundles.Add(-1)
	for _, o := range b.operands {
		if o.Retainer != nil {
			o.Retainer.Release()
		}
	}
}

func releaseAll(bundles []*bundle) {
	for _, b := range bundles {
		b.release()
	}
}

// A held bundle belongs to no updatable node: it is of an embedded graph, or of
// a capture as a whole.
type held struct {
	path string // the node's name, as in Retained
	b    *bundle
	in   *ExecNode // of what embeds the node; nil if nothing does
}

// describe appends what b retains to list.
func (b *bundle) describe(list []Retained, node string) []Retained {
	if b == nil {
		return list
	}
	for _, o := range b.operands {
		if o.Retainer != nil && o.Name != "" {
			list = append(list, Retained{node, o.Name, o.Object, o.NBytes, o.Reason})
		}
	}
	return list
}

// object returns the object of what b retains as the named operand, or nil.
func (b *bundle) object(operand string) any {
	if b == nil {
		return nil
	}
	for _, o := range b.operands {
		if o.Retainer != nil && o.Name == operand {
			return o.Object
		}
	}
	return nil
}

// event returns the event that b keeps valid, or nil.
func (b *bundle) event() *cuda.Event {
	if b == nil {
		return nil
	}
	for _, o := range b.operands {
		if use, ok := o.Retainer.(handleUse); ok && use.event != nil {
			return use.event
		}
	}
	return nil
}

// Retain makes g as a whole keep operands alive, as [Capture.Keep] does while it
// is being captured: for as long as g, or a clone, a parent or an executable of
// what it is from now on.
//
// Errors: as for adding a node; the operands are released then.
func (g *Graph) Retain(operands []Operand) error {
	b := newBundle(operands)
	err := g.keepLoose(b)
	if err != nil {
		b.release()
	}
	return err
}

func (g *Graph) keepLoose(b *bundle) error {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	if err := g.usable(beChanged); err != nil {
		return err
	}
	if err := b.mayUse(nil); err != nil {
		return err
	}
	if b != nil {
		g.loose = append(g.loose, b)
		g.watch.notify([]*bundle{b}, nil)
	}
	return nil
}

// appendHeld appends bundles to those of a graph as a whole, of which none is nil.
func appendHeld(list []*bundle, more ...*bundle) []*bundle {
	for _, b := range more {
		if b != nil {
			list = append(list, b)
		}
	}
	return list
}

// A watcher is the OnBundle function of an owner, or nil.
type watcher func(list []Operand, held bool)

// notify reports a change of what an owner holds.
//
// Preconditions: the lock that guards the change is held, so that reports come
// in the order of the changes.
func (w watcher) notify(add, remove []*bundle) {
	if w == nil {
		return
	}
	for _, b := range add {
		w.tell(b, true)
	}
	for _, b := range remove {
		w.tell(b, false)
	}
}

func (w watcher) tell(b *bundle, held bool) {
	if b != nil {
		w(b.operands, held)
	}
}

func (b *bundle) visit(f func([]Operand)) {
	if b != nil {
		f(b.operands)
	}
}

func retainersOf(bundles []*bundle) []Retainer {
	var list []Retainer
	for _, b := range bundles {
		if b == nil {
			continue
		}
		for _, o := range b.operands {
			if o.Retainer != nil {
				list = append(list, o.Retainer)
			}
		}
	}
	return list
}

// live counts the open objects of this package, for leak tests and reports.
var live struct {
	graphs, execs, bundles, captures, abandoned atomic.Int64
}

// Live returns how many graphs, executables, bundles and captures are open, by
// kind: "Graph", "GraphExec", "Bundle", "Capture". Kinds with none are absent.
// A closed executable counts until its last launch has completed. "Abandoned"
// counts waits that began after the reaper had stopped, for example of closed
// or updated executables: what they hold is leaked on purpose.
func Live() map[string]int {
	m := make(map[string]int)
	for name, n := range map[string]*atomic.Int64{
		"Graph": &live.graphs, "GraphExec": &live.execs, "Bundle": &live.bundles,
		"Capture": &live.captures, "Abandoned": &live.abandoned,
	} {
		if v := n.Load(); v != 0 {
			m[name] = int(v)
		}
	}
	return m
}
