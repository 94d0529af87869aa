// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math/bits"
	"runtime"
	"runtime/debug"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// idleContexts is how many contexts a device keeps for the next launch.
const idleContexts = 16

// takeContext returns an idle context, if possible one that ran the kernel
// before and still holds its constants.
func (d *Device) takeContext(k *Kernel) *context {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.contexts)
	if n == 0 {
		return &context{}
	}
	pick := n - 1
	for i, c := range d.contexts {
		if c.kernel == k {
			pick = i
			break
		}
	}
	c := d.contexts[pick]
	d.contexts[pick] = d.contexts[n-1]
	d.contexts = d.contexts[:n-1]
	return c
}

func (d *Device) putContext(c *context) {
	c.run, c.params = nil, nil
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed && len(d.contexts) < idleContexts {
		d.contexts = append(d.contexts, c)
	}
}

// bind prepares the context for a launch: memories of the right size, and
// registers that hold the kernel's constants and the launch's specials.
func (c *context) bind(r *execution) {
	k := r.kernel
	n := int(r.threads+register.Lanes-1) / register.Lanes
	c.run, c.params = r, r.params
	c.sharedBytes = uint64(k.dynamicOffset) + uint64(r.dynamicShared)
	if len(c.shared) < int(c.sharedBytes) {
		c.shared = make([]byte, (c.sharedBytes+4095)&^4095)
	}
	c.localStride = (k.localBytes + 15) &^ 15
	if need := c.localStride * uint64(n) * register.Lanes; uint64(len(c.local)) < need {
		c.local = make([]byte, need)
	}
	c.epoch = k.module.device.memory.Epoch()
	if c.kernel == k && len(c.warps) == n {
		clear(c.sites)
	} else {
		c.kernel = k
		c.sites = make([]site, k.sites)
		c.makeWarps(n)
	}
	if r.watch != nil {
		c.bindWatch(r.watch)
	}
	for i := range c.warps {
		w := &c.warps[i]
		w.File = w.frameAt(0)
		k.entry.fillSpecials(w, register.Full, false)
		for j := range k.entry.loads {
			w.loadParam(&k.entry.loads[j], register.Full)
		}
	}
}

// makeWarps allocates the warps' registers and fills in the constants.
func (c *context) makeWarps(n int) {
	fn := c.kernel.entry
	words := int(fn.regBytes)/8 + 8 // the gap keeps warps off each other's cache sets
	all := make([]uint64, words*n)
	c.warps = make([]warp, n)
	for i := range c.warps {
		w := &c.warps[i]
		w.cta, w.index = c, i
		w.stack = all[i*words : (i+1)*words : (i+1)*words]
		w.frames = []frame{{fn: fn, parent: -1}}
		w.File = w.frameAt(0)
		for j := range fn.consts {
			k := &fn.consts[j]
			w.Fill(k.reg, k.class, k.bits, register.Full)
		}
	}
}

// start sets the context to the beginning of a block.
func (c *context) start(i uint64) {
	r := c.run
	r.check(nil)
	c.linear = i
	g := r.grid
	c.block = [3]uint32{uint32(i % uint64(g[0])), uint32(i / uint64(g[0]) % uint64(g[1])), uint32(i / uint64(g[0]) / uint64(g[1]))}
	if e := c.kernel.module.device.memory.Epoch(); e != c.epoch {
		c.epoch = e
		clear(c.sites)
	}
	if r.watch != nil {
		c.watch.startBlock()
	}
	c.live = r.threads
	c.barriers = [numBarriers]barrier{}
	for i := range c.warps {
		w := &c.warps[i]
		w.live = register.Full
		if left := int(r.threads) - i*register.Lanes; left < register.Lanes {
			w.live = 1<<left - 1
		}
		w.frames = w.frames[:1]
		w.frames[0].refs = 1
		w.parked = w.parked[:0]
		w.ready = append(w.ready[:0], group{mask: w.live})
		w.File = w.frameAt(0)
		w.spent = 0
		c.kernel.entry.fillSpecials(w, register.Full, true)
	}
}

// stopSignal unwinds a worker whose launch has failed elsewhere.
type stopSignal struct{}

// check ends the block if the launch has failed or been canceled. The warp, if
// any, is where it was noticed.
func (r *execution) check(w *warp) {
	if r.stop.Load() {
		panic(stopSignal{})
	}
	select {
	case <-r.cancel:
		if w != nil {
			w.fault(&laneFault{kind: FaultCanceled, lane: bits.TrailingZeros32(w.running.mask)})
		}
		f := &Fault{Kind: FaultCanceled, Kernel: r.kernel.ir.Name}
		r.fail(f)
		panic(stopSignal{})
	default:
	}
	if w == nil {
		return
	}
	if budget := r.kernel.module.device.config.StepBudget; budget > 0 && w.spent > budget {
		w.fault(&laneFault{kind: FaultBudget, lane: bits.TrailingZeros32(w.running.mask), detail: fmt.Sprintf("more than %d loop iterations", budget)})
	}
}

// fail records the launch's first fault and stops the others.
func (r *execution) fail(f *Fault) {
	r.failed.CompareAndSwap(nil, f)
	r.stop.Store(true)
}

// laneFault is what an instruction panics with; protect makes a Fault of it.
type laneFault struct {
	kind       FaultKind
	warp       *warp
	in         *inst // nil: the block's terminator
	lane       int
	addr, size uint64
	space      ptxir.Space
	limit      uint64
	detail     string
}

func (w *warp) fault(f *laneFault) {
	f.warp = w
	panic(f)
}

// protect runs fn and turns a panic into the launch's fault: a lane's, a host
// page that is gone, or a bug of ours.
func (r *execution) protect(c *context, fn func()) {
	// Host ranges belong to the caller, who may have unmapped one: that must be
	// an error of the kernel, not the end of the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil, stopSignal:
			return
		case *laneFault:
			r.fail(c.describe(p))
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			f := c.where()
			f.Kind, f.Address, f.Size = FaultIllegalAddress, uint64(p.Addr()), 1
			f.Detail = "the host memory behind this address is not mapped"
			r.fail(f)
		default:
			f := c.where()
			f.Kind, f.Detail = FaultInternal, fmt.Sprintf("%v\n%s", p, debug.Stack())
			r.fail(f)
		}
		c.kernel = nil // its warps are in the middle of something
	}()
	fn()
}

// where is a Fault that says only where the context is.
func (c *context) where() *Fault {
	return &Fault{Kernel: c.run.kernel.ir.Name, Block: c.block}
}

// describe makes the fault of a lane.
func (c *context) describe(p *laneFault) *Fault {
	f := c.where()
	f.Kind, f.Address, f.Size, f.Detail = p.kind, p.addr, p.size, p.detail
	f.Thread = p.warp.thread(p.lane)
	var pos ptxir.Pos
	switch {
	case p.in != nil:
		pos, f.Instruction = p.in.ir.Pos, instrText(p.in.ir)
	case p.warp.at != nil:
		pos, f.Instruction = p.warp.at.pos, p.warp.at.text
	}
	f.PTXLine, f.SourceLine = pos.Line, pos.SourceLine
	if files := c.kernel.module.ir.Files; pos.File > 0 && pos.File < len(files) {
		f.SourceFile = files[pos.File]
	}
	switch {
	case p.kind == FaultMisaligned && (p.in.ir.Space == ptxir.SpaceGlobal || p.in.ir.Space == ptxir.SpaceGeneric):
		f.Nearest, _ = c.nearest(p.addr, 0)
		return f
	case p.kind != FaultIllegalAddress:
		return f
	}
	switch p.space {
	case ptxir.SpaceShared, ptxir.SpaceLocal, ptxir.SpaceParam:
		f.Detail = fmt.Sprintf("%s memory has %d bytes", p.space, p.limit)
	default:
		f.Nearest, f.Detail = c.nearest(p.addr, p.limit)
	}
	return f
}

// nearest describes a global or generic address.
func (c *context) nearest(addr, limit uint64) (memory.Nearest, string) {
	for _, s := range []ptxir.Space{ptxir.SpaceShared, ptxir.SpaceLocal, ptxir.SpaceParam} {
		if base, _ := window(s); addr>>memory.WindowShift == base>>memory.WindowShift {
			return memory.Nearest{}, fmt.Sprintf("offset %d in %s memory, which has %d bytes", int64(addr-base), s, limit)
		}
	}
	m := c.kernel.module.device.memory
	n := m.Near(addr)
	if !n.Found {
		return n, n.String()
	}
	return n, m.Denied(addr)
}
