// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math/bits"
	"runtime/debug"

	"github.com/cudago/cudago/internal/memfault"
	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// stopSignal unwinds a worker whose launch has failed elsewhere.
type stopSignal struct{}

// check ends the block if the launch has failed or was canceled. The warp, if
// there is one, is the one that noticed.
func (r *execution) check(w *warp) {
	if r.stop.Load() {
		panic(stopSignal{})
	}
	select {
	case <-r.cancel:
		if w != nil {
			w.Fault(&lane.Stop{Kind: fault.Canceled, Lane: bits.TrailingZeros32(w.running.mask), Detail: r.notBegun()})
		}
		f := &fault.Fault{Kind: fault.Canceled, Kernel: r.kernel.ir.Name}
		r.fail(f)
		panic(stopSignal{})
	default:
	}
	if w == nil {
		return
	}
	if budget := r.kernel.module.device.config.StepBudget; budget > 0 && w.spent > budget {
		detail := fmt.Sprintf("more than %d loop iterations and calls", budget)
		if s := r.notBegun(); s != "" {
			detail += "; " + s
		}
		w.Fault(&lane.Stop{Kind: fault.Budget, Lane: bits.TrailingZeros32(w.running.mask), Detail: detail})
	}
}

// fail records the launch's first fault and stops the others.
func (r *execution) fail(f *fault.Fault) {
	r.failed.CompareAndSwap(nil, f)
	r.stop.Store(true)
}

// protect runs fn and turns a panic into the launch's fault: that of a lane, an
// access to a host page that is gone, or a bug of ours.
func (r *execution) protect(c *cta, fn func()) {
	// Host ranges belong to the caller, who may have unmapped one: that must be
	// an error of the kernel, not the end of the process.
	defer r.section.Panics()()
	defer func() {
		switch p := recover().(type) {
		case nil, stopSignal:
			return
		case *lane.Stop:
			r.fail(c.describe(p))
		default:
			r.fail(c.unexpected(p))
		}
		c.kernel = nil // its warps are in the middle of something
	}()
	fn()
}

// unexpected makes the fault of a panic that no lane has raised.
func (c *cta) unexpected(p any) *fault.Fault {
	f := c.where()
	if addr, ok := memfault.Address(p); ok {
		f.Kind, f.Address, f.Size = fault.IllegalAddress, uint64(addr), 1
		f.Detail = "the host memory behind this address is not mapped"
		return f
	}
	f.Kind, f.Detail = fault.Internal, fmt.Sprintf("%v\n%s", p, debug.Stack())
	return f
}

// where is a Fault that says only where the CTA is.
func (c *cta) where() *fault.Fault {
	return &fault.Fault{Kernel: c.run.kernel.ir.Name, Block: c.Block}
}

// describe makes the fault of a lane.
func (c *cta) describe(p *lane.Stop) *fault.Fault {
	f := c.where()
	f.Kind, f.Address, f.Size, f.Detail = p.Kind, p.Addr, p.Size, p.Detail
	f.Thread = p.Warp.Thread(p.Lane)
	var pos ptxir.Pos
	switch {
	case p.In != nil:
		pos, f.Instruction = p.In.IR.Pos, lane.Text(p.In.IR)
	case c.warps[p.Warp.Index].at != nil:
		pos, f.Instruction = c.warps[p.Warp.Index].at.Pos, c.warps[p.Warp.Index].at.Text
	}
	f.PTXLine, f.SourceLine = pos.Line, pos.SourceLine
	if files := c.kernel.module.ir.Files; pos.File > 0 && pos.File < len(files) {
		f.SourceFile = files[pos.File]
	}
	switch {
	case p.Kind == fault.Misaligned && (p.In.IR.Space == ptxir.SpaceGlobal || p.In.IR.Space == ptxir.SpaceGeneric):
		f.Nearest, _ = c.nearest(p.Addr, 0)
		return f
	case p.Kind != fault.IllegalAddress:
		return f
	}
	switch p.Space {
	case ptxir.SpaceShared:
		f.Detail = c.inShared(p.Addr)
	case ptxir.SpaceLocal, ptxir.SpaceParam:
		f.Detail = fmt.Sprintf("%s memory has %d bytes", p.Space, p.Limit)
	default:
		var detail string
		if f.Nearest, detail = c.nearest(p.Addr, p.Limit); f.Detail == "" {
			f.Detail = detail
		}
	}
	return f
}

// inShared describes an address in shared memory, of which the block's own counts.
func (c *cta) inShared(addr uint64) string {
	return fmt.Sprintf("offset %d in shared memory, which has %d bytes", c.SharedPlace(addr), c.SharedBytes)
}

// nearest describes a global or generic address.
func (c *cta) nearest(addr, limit uint64) (memory.Nearest, string) {
	if addr>>memory.WindowShift == memory.SharedWindow {
		return memory.Nearest{}, c.inShared(addr)
	}
	for _, s := range []ptxir.Space{ptxir.SpaceLocal, ptxir.SpaceParam} {
		if base, _ := lane.Window(s); addr>>memory.WindowShift == base>>memory.WindowShift {
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
