// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/register"
	"github.com/cudago/cudago/internal/ptxvm/shadow"
)

// access describes one access of an instruction in a watched kernel.
type access struct {
	site  uint32 // its index in code.accesses
	ir    *ptxir.Instr
	space ptxir.Space
	kind  shadow.Kind
	reads bool // an atomic operation, which reads what it writes
	class register.Class
	reg   uint32 // the address
	imm   uint64
	size  uint64
	// values are the registers that a store writes, for comparison.
	values []value
	// rows says that lanes hold the addresses of matrix rows; matrices are the
	// registers that stmatrix writes there.
	rows     int
	matrices []uint32
	// quiet says that the access never races, because there are fences around it.
	quiet bool
	// limit is a register that cuts the size short (cp.async), or None; or
	// a predicate that makes it 0.
	limit     uint32
	limitPred bool
}

type value struct {
	reg   uint32
	class register.Class
	size  uint64
}

// watched is the check around an instruction in a watched kernel.
type watched struct {
	accesses []access
	fence    bool // what the block did before is visible to all after
	bulk     bool // a bulk copy, whose accesses are of shared memory and of global memory
	sampled  bool // through a texture or a surface
}

// Watch wraps an instruction that touches memory which others can see. The
// wrapper is a copy with another function, whose only part is the original.
func (d *Decoder) Watch(in *lane.Inst) {
	w := d.accessesOf(in)
	if !w.fence && len(w.accesses) == 0 {
		return
	}
	for i := range w.accesses {
		a := &w.accesses[i]
		a.site, a.ir = uint32(len(d.code.accesses)), in.IR
		d.code.accesses = append(d.code.accesses, *a)
	}
	inner := *in
	in.Parts = []lane.Inst{inner}
	in.Site = uint32(len(d.code.watches))
	d.code.watches = append(d.code.watches, w)
	in.Fn = runWatched
}

// accessesOf describes what an instruction does to memory.
func (d *Decoder) accessesOf(in *lane.Inst) watched {
	ir := in.IR
	switch ir.Op {
	case ptxir.OpFence:
		return watched{fence: true}
	case ptxir.OpLd, ptxir.OpLdu, ptxir.OpSt, ptxir.OpAtom:
		if !sharable(ir.Space) {
			return watched{}
		}
		return watched{accesses: []access{d.plainAccess(ir)}, fence: ir.Mod&ptxir.ModRelease != 0}
	case ptxir.OpCpAsync:
		to, from := d.accessAt(ir.Src[0], ir), d.accessAt(ir.Src[1], ir)
		to.kind, to.space, to.size, to.imm = shadow.WeakWrite, ptxir.SpaceShared, uint64(ir.Imm), 0
		from.kind, from.space, from.size, from.imm = shadow.WeakRead, ptxir.SpaceGlobal, uint64(ir.Imm), 0
		from.limit, from.limitPred = in.C, ir.Mod&ptxir.ModIgnoreSrc != 0
		return watched{accesses: []access{from, to}}
	case ptxir.OpLdmatrix, ptxir.OpStmatrix:
		a := d.accessAt(ir.Src[0], ir)
		a.space, a.size, a.rows, a.imm = ptxir.SpaceShared, 16, 8*int(ir.Imm), 0
		if ir.Op == ptxir.OpStmatrix {
			a.kind, a.matrices = shadow.WeakWrite, in.More
		}
		return watched{accesses: []access{a}}
	case ptxir.OpMbarInit, ptxir.OpMbarArrive, ptxir.OpMbarTest, ptxir.OpCpAsyncMbarrier, ptxir.OpMbarExpectTx, ptxir.OpMbarInval:
		a := d.accessAt(ir.Src[0], ir)
		a.space, a.size, a.quiet = ptxir.SpaceShared, 8, true
		if ir.Op == ptxir.OpMbarInit {
			a.kind = shadow.WeakWrite
		}
		return watched{accesses: []access{a}, fence: ir.Op != ptxir.OpMbarExpectTx && ir.Op != ptxir.OpMbarInval}
	case ptxir.OpBulkLoad, ptxir.OpBulkStore, ptxir.OpTensorLoad, ptxir.OpTensorStore:
		return watched{accesses: bulkAccesses(ir), bulk: true}
	case ptxir.OpTex, ptxir.OpSurfLoad, ptxir.OpSurfStore:
		return watched{accesses: []access{sampledAccess(ir)}, sampled: true}
	}
	return watched{}
}

// sharable reports whether threads can share memory of the space.
func sharable(s ptxir.Space) bool {
	return s == ptxir.SpaceGlobal || s == ptxir.SpaceShared || s == ptxir.SpaceGeneric
}

func (d *Decoder) accessAt(address ptxir.Reg, ir *ptxir.Instr) access {
	return access{
		space: ir.Space, class: register.ClassOf(d.lane.Regs[address]), reg: d.lane.Offsets[address], imm: uint64(ir.Imm), limit: register.None,
	}
}

func (d *Decoder) plainAccess(ir *ptxir.Instr) access {
	a := d.accessAt(ir.Src[0], ir)
	strong := ir.Mod&(ptxir.ModVolatile|ptxir.ModAcquire|ptxir.ModRelease) != 0
	elements := ir.Dst
	switch ir.Op {
	case ptxir.OpAtom:
		a.kind, a.reads, a.size = shadow.StrongWrite, true, atomBytes(ir)
		return a
	case ptxir.OpSt:
		elements = ir.Src[1:]
		a.kind = shadow.WeakWrite
		for _, r := range elements {
			a.values = append(a.values, value{d.lane.Offsets[r], register.ClassOf(d.lane.Regs[r]), registerBytes(ir.Type)})
		}
	}
	if strong {
		a.kind += shadow.StrongRead - shadow.WeakRead
	}
	a.size = uint64(len(elements)) * registerBytes(ir.Type)
	return a
}

// registerBytes is how much of an access is in one register.
func registerBytes(t ptxir.Type) uint64 { return uint64(min(t.Size(), 8)) }

// atomBytes is the size of what an atomic operation updates.
func atomBytes(ir *ptxir.Instr) uint64 {
	registers := len(ir.Src) - 1
	if ir.Atom == ptxir.AtomCas {
		registers /= 2
	}
	return uint64(registers) * registerBytes(ir.Type)
}
