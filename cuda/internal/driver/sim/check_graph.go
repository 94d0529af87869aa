// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// A graph launch is refused, before anything runs, if a node's operand lies in
// freed memory. Operands are those of copies and fills, and the 8-byte
// parameters of kernels: a device address is never used twice, so a number in a
// freed range is a dangling pointer. A number in no range is accepted: it may
// not be a pointer.
//
// The search runs only if something was freed since the launch before, or a
// node was changed.

// refuseDangling looks for dangling operands.
//
// Preconditions: x.mu must be locked.
func (x *graphExec) refuseDangling() driver.CUresult {
	frees := x.sim.check.frees.Load()
	if x.soundAt == frees {
		return driver.CUDA_SUCCESS
	}
	for i := range x.plan.nodes {
		n := &x.plan.nodes[i]
		if n.disabled || n.work == nil {
			continue
		}
		if text := x.dangling(n.work); text != "" {
			text = fmt.Sprintf("graph launch refused, nothing ran: %s: %s", x.plan.label(int32(i)), text)
			if at := x.sim.check.site(""); at != "" {
				text += "; launched at " + at
			}
			x.sim.check.refuse(text)
			return driver.CUDAGO_CHECK_FAILED
		}
	}
	x.soundAt = frees
	return driver.CUDA_SUCCESS
}

// dangling says which operand of a node dangles.
func (x *graphExec) dangling(w work) string {
	switch w := w.(type) {
	case *kernelWork:
		for i := range w.fn.params {
			p := &w.fn.params[i]
			if p.Size != 8 {
				continue
			}
			if text := x.freed(binary.LittleEndian.Uint64(w.args[p.Offset:])); text != "" {
				return fmt.Sprintf("kernel %s, parameter %d (%s) %s", w.fn.kernel.Name(), i, p.Name, text)
			}
		}
	case *copyWork:
		if text := x.freedOperand(&w.dst); text != "" {
			return fmt.Sprintf("copy of %d bytes, its destination %s", w.dst.size, text)
		}
		if text := x.freedOperand(&w.src); text != "" {
			return fmt.Sprintf("copy of %d bytes, its source %s", w.src.size, text)
		}
	case *fillWork:
		if text := x.freedOperand(&w.dst); text != "" {
			return fmt.Sprintf("fill of %d bytes, its destination %s", w.dst.size, text)
		}
	case *memOpWork:
		for i := range w.ops {
			if text := x.freedOperand(&w.ops[i].at); text != "" {
				return fmt.Sprintf("memory operation of %d bytes, its address %s", w.ops[i].at.size, text)
			}
		}
	}
	return ""
}

// freed describes where addr points if that memory was freed. Memory whose
// stream-ordered free is only queued counts: a launch that is called later
// cannot come before it.
func (x *graphExec) freed(addr uint64) string {
	d := x.sim
	if a := d.space.find(addr); a != nil {
		switch {
		case a.freed.Load():
			return fmt.Sprintf("is %#x, %s", addr, a.nearest(addr))
		case a.graph != nil && !a.graph.isLive() && !slices.Contains(x.allocs, a.graph):
			return fmt.Sprintf("is %#x, %s, which is not allocated now", addr, a.nearest(addr))
		}
		return ""
	}
	if !isSimulated(addr) {
		// The system may have reused the addresses, and AllowHost may cover them now.
		if a := d.check.exhume(addr); a != nil && d.memoryOf(addr) == nil {
			return fmt.Sprintf("is %#x, %s", addr, a.nearest(addr))
		}
		return ""
	}
	for _, dev := range d.devices {
		if n, ok := dev.memory.Freed(addr); ok {
			return fmt.Sprintf("is %#x, %s", addr, n)
		}
	}
	return ""
}

// freedOperand is freed for an operand that was checked when the node was made.
// Nothing is known about host addresses that had no owner then.
func (x *graphExec) freedOperand(o *operand) string {
	switch {
	case o.known != nil && o.known.freed.Load():
		return fmt.Sprintf("is %#x, %s", o.addr, o.known.nearest(o.addr))
	case isSimulated(o.addr):
		return x.freed(o.addr)
	}
	return ""
}

var vmKinds = [...]memory.Kind{
	memDevice: memory.DeviceMemory, memPool: memory.DeviceMemory, memGraph: memory.DeviceMemory,
	memPinned: memory.HostPinned, memManaged: memory.HostManaged, memRegistered: memory.HostRegistered,
}

// nearest describes an address in the allocation as the VM would.
func (a *allocation) nearest(addr uint64) memory.Nearest {
	n := memory.Nearest{
		Found: true, Base: a.base, Size: a.size, Kind: vmKinds[a.kind], Freed: a.freed.Load(), Site: a, Offset: int64(addr - a.base),
	}
	if by := a.freedBy.Load(); by != nil {
		n.FreeSite = *by
	}
	return n
}

// mostBuried is how many freed host allocations are remembered.
const mostBuried = 256

// bury remembers freed host memory, whose addresses the system may reuse.
func (k *checker) bury(a *allocation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.buried) == mostBuried {
		k.buried = append(k.buried[:0], k.buried[1:]...)
	}
	k.buried = append(k.buried, a)
}

// exhume finds the freed host memory that contained addr. The caller has
// already looked for live memory of ours there.
func (k *checker) exhume(addr uint64) *allocation {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range slices.Backward(k.buried) {
		if addr-a.base < a.size {
			return a
		}
	}
	return nil
}

// label names a node of a plan: by its own name, or by its number in its graph.
func (p *plan) label(at int32) string {
	n := &p.nodes[at]
	text := fmt.Sprintf("node %d", n.order)
	if n.name != "" {
		text = fmt.Sprintf("node %q", n.name)
	}
	switch {
	case n.within < 0:
	case n.within == n.inside:
		text += " in a body of conditional " + p.label(n.within)
	default:
		text += " of the child graph, " + p.label(n.within)
	}
	return text
}

// before reports whether what a does happens before what b does: an edge, or a
// path of edges, leads from a to b. If b may start before a has ended, the edge
// counts only if b waits for that end.
func (p *plan) before(a, b int32) bool {
	p.ancestry.Do(func() {
		words := (len(p.nodes) + 63) / 64
		p.ancients = make([][]uint64, len(p.nodes))
		starts := make([][]uint64, len(p.nodes)) // what has ended when a node starts
		for i := range p.nodes {
			n := &p.nodes[i]
			set := make([]uint64, words)
			for _, o := range n.after {
				if slices.Contains(n.early, o) {
					unite(set, starts[o])
					continue
				}
				set[o/64] |= 1 << (o % 64)
				unite(set, p.ancients[o])
			}
			p.ancients[i], starts[i] = set, set
			if len(n.early) == 0 || n.isHasty() {
				continue
			}
			p.ancients[i] = slices.Clone(set)
			for _, o := range n.early {
				p.ancients[i][o/64] |= 1 << (o % 64)
				unite(p.ancients[i], p.ancients[o])
			}
		}
	})
	return p.ancients[b][a/64]>>(a%64)&1 != 0
}

// unite adds the nodes of a set to another.
func unite(set, others []uint64) {
	for w, bits := range others {
		set[w] |= bits
	}
}

// isHasty reports whether a node may start before others have ended, and runs a
// kernel that never waits for that.
func (n *planNode) isHasty() bool {
	k, ok := n.work.(*kernelWork)
	return ok && !n.disabled && len(n.early) > 0 && !k.fn.kernel.WaitsForGrids()
}

// NameNodes is documented at driver.Checker.
func (d *simulator) NameNodes(nodes []driver.CUgraphNode, names []string) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	for i, h := range nodes {
		if n := d.nodes.get(h); n != nil {
			n.name = names[i]
		}
	}
}
