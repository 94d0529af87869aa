// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// mark says how an item of a queue is to be checked.
type mark struct {
	checks checks
	at     point  // the item itself
	before clock  // all that happens before it; nil unless races are looked for
	tick   uint64 // when it was queued
	site   string // where
	hasty  bool   // a kernel that overlaps with those in front, and never waits for them
}

// task is one piece of work that touches memory: an item, a node of a graph
// launch, or the host.
type task struct {
	mark
	run    *graphRun // the graph launch that it is part of
	node   int32
	turns  []turnOf
	watch  *check.Watch
	isHost bool
}

// before reports whether t happens before o.
func (t *task) before(o *task) bool {
	switch {
	case t.isHost:
		return o.isHost || t.tick < o.tick
	case t.run != nil && t.run == o.run:
		if before, ordered := orderedByTurns(t.turns, o.turns); ordered {
			return before
		}
		return t.run.plan.before(t.node, o.node)
	}
	return o.mark.before[t.at.tl] >= t.at.seq
}

// mark makes the mark of an item that is queued now; nil without checks.
//
// ended is what [stream.follow] returns.
//
// Preconditions: the stream's mu is locked, so that marks are made in the order
// of their numbers.
func (k *checker) mark(w work, p point, after []point, ended uint64) *mark {
	on := k.flags()
	if on&checkAll == 0 {
		return nil
	}
	m := &mark{checks: on, at: p}
	switch w.(type) {
	case *record, joinWork, *freeWork, *graphFreeWork:
	default:
		m.site = k.site("")
	}
	if on&checkRaces != 0 {
		if m.hasty = ended < p.seq-1 && !w.(*kernelWork).fn.kernel.WaitsForGrids(); !m.hasty {
			ended = p.seq - 1
		}
		m.before, m.tick = k.order.queued(p, after, ended)
	}
	return m
}

// ordering reports whether waits for completed work count: while races are
// looked for, it matters that the program waits, not that there was nothing
// left to wait for.
func (k *checker) ordering() bool { return k.flags()&checkRaces != 0 }

// waited notes that the host has waited for a point.
func (d *simulator) waited(p point) {
	if !d.check.ordering() || p.tl == nil {
		return
	}
	if last, allDone := d.check.order.hostWaited(p); allDone {
		d.forgetTraces(last)
	}
}

// waitedForAll notes that the host has waited for all work of a context.
func (d *simulator) waitedForAll(c *context) {
	if !d.check.ordering() {
		return
	}
	if last, allDone := d.check.order.hostKnowsContext(c); allDone {
		d.forgetTraces(last)
	}
}

// upkeepPause is how long ago work must have ended that the program has not waited
// for, until MayQuery lets others ask.
const upkeepPause = time.Second

// MayQuery is documented at driver.Checker.
func (d *simulator) MayQuery(h driver.CUevent) bool {
	if !d.check.ordering() {
		return true
	}
	e := d.events.get(h)
	if e == nil || e.shared != nil || e.ctx.result() != driver.CUDA_SUCCESS {
		return true
	}
	rec := e.get()
	if rec == nil || rec.tl == nil || d.check.order.knows(rec.point) {
		return true // without a timeline: it was recorded in a capture
	}
	return rec.reached() && time.Since(started)-time.Duration(rec.at.Load()) > upkeepPause
}

// forgetTraces forgets who accessed memory, up to a task. Later tasks may be under
// way.
func (d *simulator) forgetTraces(last uint32) {
	for _, dev := range d.devices {
		dev.memory.ForgetTraces(last)
	}
}

// watch makes the Watch of what x is about to do; nil without checks. The text
// is its name, and culprit may add to what is found.
func (x *execution) watch(name string, culprit func(memory.Nearest) string) *check.Watch {
	m := x.mark
	if m == nil {
		return nil
	}
	w := &check.Watch{}
	if m.checks&checkRaces != 0 {
		w.Checks |= check.Races
	}
	if m.checks&checkUninitialized != 0 {
		w.Checks |= check.Uninitialized
	}
	if w.Checks == 0 {
		return nil
	}
	t := &task{mark: *m, run: x.graph, node: x.node, turns: x.turns, watch: w}
	label, hasty := "", m.hasty
	if x.graph != nil {
		hasty = x.graph.plan.nodes[x.node].isHasty()
		label = x.graph.plan.label(x.node)
		name += ", " + label + " of a graph launch"
	}
	w.Name = name + x.where()
	w.Unordered = func(earlier uint32) *check.Watch { return x.sim.check.order.unordered(t, earlier) }
	w.Report = func(f *check.Finding) {
		x.sim.complete(f)
		if hasty && f.Kind == check.FindingRace && strings.HasPrefix(f.Why, "nothing orders") {
			f.Why = "the later may start before the earlier has ended, and never executes griddepcontrol.wait"
		}
		text := f.Error()
		if label != "" && f.Here.Kernel != "" {
			text = "graph launch, " + label + ": " + text
		}
		if culprit != nil {
			text += culprit(f.Nearest)
		}
		x.ctx.found(text, m.checks)
	}
	w.Task = x.sim.check.order.add(t)
	if len(x.turns) > 0 {
		x.graph.turned(&x.sim.check.order, w.Task)
	}
	return w
}

// complete adds facts to a finding that the VM does not know.
func (d *simulator) complete(f *check.Finding) {
	if strings.HasPrefix(f.Here.Name, theHost) || strings.HasPrefix(f.There.Name, theHost) {
		f.Why = "the host did not wait for the stream"
	}
	if f.Nearest.Found && f.Nearest.Site == nil {
		if a := d.space.find(f.Address); a != nil {
			f.Nearest.Site = a
		}
	}
}

// touches reports whether copies and fills have to say what they touch.
func (x *execution) touches() bool { return x.mark != nil || x.ctx.dev.memory.Undefined() }

// joined notes that the rest of a graph launch comes after a point.
func (x *execution) joined(p point) {
	if x.mark == nil || x.mark.before == nil {
		return
	}
	o := &x.sim.check.order
	o.mu.Lock()
	defer o.mu.Unlock()
	m := *x.mark
	m.before = m.before.joined(o.at(p))
	x.mark = &m
}

// where says where the work at hand was queued.
func (x *execution) where() string {
	text := fmt.Sprintf(" in stream %d", x.mark.at.tl.stream.id)
	if x.mark.site != "" {
		text += ", launched at " + x.mark.site
	}
	return text
}

// pointsTo says which parameter points to an allocation.
func (w *kernelWork) pointsTo(n memory.Nearest) string {
	if !n.Found {
		return ""
	}
	for i := range w.fn.params {
		p := &w.fn.params[i]
		if p.Size != 8 {
			continue
		}
		if v := binary.LittleEndian.Uint64(w.args[p.Offset:]); v-n.Base <= n.Size {
			return fmt.Sprintf("; parameter %d (%s) points to it", i, p.Name)
		}
	}
	return ""
}

// touch checks what a copy or a fill does to memory: its reads, if src is not
// nil, and its writes.
func (x *execution) touch(name string, dst, src *operand, to, from layout, width, height, depth uint64) {
	m := x.memoryOf(dst)
	w := x.watch(name, nil)
	if w != nil {
		defer w.Flush()
	}
	for z := range depth {
		for y := range height {
			into := dst.addr + z*to.slice + y*to.pitch
			var undefined []memory.Run
			if src != nil {
				undefined = x.touchSource(w, dst, src, src.addr+z*from.slice+y*from.pitch, width)
			}
			if w == nil {
				m.Define(into, width)
			} else {
				w.Touch(m, into, width, true)
			}
			m.UndefineParts(into, undefined)
		}
	}
}

// memoryOf returns the memory of the device that has an operand, or that x runs on.
func (x *execution) memoryOf(o *operand) *memory.Memory {
	if o.known != nil && o.known.onDevice() {
		return o.known.ctx.dev.memory
	}
	return x.ctx.dev.memory
}

// touchSource checks a read. A copy within the device may copy undefined bytes:
// they have not been used yet. It returns which they are.
func (x *execution) touchSource(w *check.Watch, dst, src *operand, addr, size uint64) (undefined []memory.Run) {
	m := x.memoryOf(src)
	if isSimulated(dst.addr) {
		undefined = m.UndefinedParts(addr, size)
	}
	if w == nil {
		return undefined
	}
	checks := w.Checks
	if isSimulated(dst.addr) {
		w.Checks &^= check.Uninitialized
	}
	w.Touch(m, addr, size, false)
	w.Checks = checks
	return undefined
}
