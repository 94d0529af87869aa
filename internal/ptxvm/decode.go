// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// block is a decoded basic block.
type block struct {
	code    []lane.Inst
	count   uint64 // PTX instructions a pass stands for
	kind    ptxir.TermKind
	pred    uint32 // TermBranch: predicate; TermSwitch: index
	invert  uint32 // TermBranch: all ones if negated
	next    int32
	other   int32 // TermBranch: where lanes without the predicate go
	cost    int   // of a jump back from here, in fuel
	targets []int32
	sync    *lane.Inst
	call    *callSite
	lane.Place
}

// function is a decoded function. It belongs to one kernel, because places of
// shared variables differ between kernels.
type function struct {
	name       string
	ir         *ptxir.Func
	blocks     []block
	offsets    []uint32 // of each register in the frame
	regBytes   uint32
	localBytes uint32
	consts     []constant
	specials   []specialUse
	loads      []lane.Parameter // registers that hold a parameter for the whole launch
	params     []uint32         // offsets of parameters among the function's local variables
	rets       []uint32
	checked    *check.Function // of the watched form only
}

// constant is a register filled on entry.
type constant struct {
	reg   uint32
	class ptxir.Class
	bits  uint64
	local bool // add the frame's place in local memory
}

type specialUse struct {
	reg      uint32
	index    ptxir.Reg
	fn       lane.SpecialFunc
	perBlock bool // changes from block to block; others stay for the whole launch
}

// decoder decodes one kernel and the functions it calls.
type decoder struct {
	module *Module
	kernel *Kernel
	funcs  map[*ptxir.Func]*function
	shared map[*ptxir.Var]uint32
	local  map[*ptxir.Var]uint32
	// The lane.Decoder is for the function being decoded, except for its sites,
	// which are the kernel's.
	lane.Decoder
	fn *function
	// writes counts the instructions that write each register, up to 2.
	writes []uint8

	checks *check.Decoder // nil without checks
}

// decodeKernel decodes a kernel for m's device, with checks or without.
//
// Preconditions: m.mu must be locked.
func (m *Module) decodeKernel(ir *ptxir.Kernel, watched bool) (*Kernel, error) {
	k := &Kernel{module: m, ir: ir}
	d := &decoder{
		module: m, kernel: k,
		Decoder: lane.Decoder{ArgBytes: ir.ArgBytes},
		funcs:   map[*ptxir.Func]*function{}, shared: map[*ptxir.Var]uint32{}, local: map[*ptxir.Var]uint32{},
	}
	reach, err := m.reachable(&ir.Func)
	if err != nil {
		return nil, err
	}
	if err := d.layoutShared(reach); err != nil {
		return nil, err
	}
	if watched {
		d.beginChecks()
	}
	for _, f := range reach {
		d.declare(f)
		if watched {
			d.declareChecked(f)
		}
	}
	for _, f := range reach {
		if err := d.decodeFunc(f); err != nil {
			return nil, fmt.Errorf("ptxvm: kernel %s: %w", ir.Name, err)
		}
	}
	k.entry = d.funcs[&ir.Func]
	k.sites = d.Sites
	k.localBytes = d.localNeed(reach)
	return k, nil
}

// declare lays out a function's registers and local variables, which package
// ptxir has found to fit 31 bits.
func (d *decoder) declare(f *ptxir.Func) {
	fn := &function{name: f.Name, ir: f, offsets: make([]uint32, len(f.Regs))}
	d.funcs[f] = fn
	// Wide rows first keeps every row aligned to its size.
	for _, class := range []ptxir.Class{ptxir.Class64, ptxir.Class32, ptxir.Class16, ptxir.ClassPred} {
		for r, c := range f.Regs {
			if c == class {
				fn.offsets[r] = fn.regBytes
				fn.regBytes += register.RowBytes(class)
			}
		}
	}
	fn.regBytes = (fn.regBytes + 63) &^ 63
	place := func(v *ptxir.Var) {
		if v.Space != ptxir.SpaceLocal {
			return
		}
		if _, done := d.local[v]; done {
			return
		}
		align := max(v.Align, 1)
		fn.localBytes = (fn.localBytes + align - 1) &^ (align - 1)
		d.local[v] = fn.localBytes
		fn.localBytes += uint32(v.Size)
	}
	for _, list := range [][]*ptxir.Var{f.Params, f.Rets, f.Vars} {
		for _, v := range list {
			place(v)
		}
	}
	fn.localBytes = (fn.localBytes + 15) &^ 15
	for _, v := range f.Params {
		fn.params = append(fn.params, d.local[v])
	}
	for _, v := range f.Rets {
		fn.rets = append(fn.rets, d.local[v])
	}
}

func (d *decoder) decodeFunc(f *ptxir.Func) error {
	fn := d.funcs[f]
	d.fn, d.Regs, d.Offsets = fn, f.Regs, fn.offsets
	d.Known = map[ptxir.Reg]*ptxir.Const{}
	for i := range f.Consts {
		c := &f.Consts[i]
		d.Known[c.Reg] = c
		if err := d.addConst(fn, c); err != nil {
			return fmt.Errorf("function %s: %w", f.Name, err)
		}
	}
	for _, s := range f.Specials {
		fill := lane.Special(s.ID)
		if fill == nil {
			return fmt.Errorf("function %s: special register %d is not supported", f.Name, s.ID)
		}
		d.kernel.usesReserved = d.kernel.usesReserved || lane.ReadsReserved(s.ID)
		fn.specials = append(fn.specials, specialUse{reg: fn.offsets[s.Reg], index: s.Reg, fn: fill, perBlock: lane.PerBlock(s.ID)})
	}
	fn.blocks = make([]block, len(f.Blocks))
	d.writes = countWrites(f)
	if d.checks != nil {
		d.checks.NumberFollowed(f, fn.checked, len(d.local) > 0)
	}
	for i := range f.Blocks {
		if err := d.decodeBlock(f, &f.Blocks[i], &fn.blocks[i]); err != nil {
			return err
		}
	}
	costBackEdges(f, fn)
	return nil
}

// addConst resolves a constant register.
func (d *decoder) addConst(fn *function, c *ptxir.Const) error {
	out := constant{reg: fn.offsets[c.Reg], class: fn.ir.Regs[c.Reg], bits: c.Bits}
	switch {
	case c.Var != nil:
		addr, err := d.address(c.Var, c.Generic)
		if err != nil {
			return err
		}
		out.bits += addr
		out.local = c.Var.Space == ptxir.SpaceLocal
	case c.Func != nil:
		out.bits += d.module.funcAddress(c.Func)
	}
	fn.consts = append(fn.consts, out)
	return nil
}

// address returns a variable's address, in its own space or generic. For a local
// variable the place of the frame is still to be added.
func (d *decoder) address(v *ptxir.Var, generic bool) (uint64, error) {
	var addr, window uint64
	switch v.Space {
	case ptxir.SpaceGlobal, ptxir.SpaceConst:
		a, ok := d.module.globals[v]
		if !ok {
			return 0, fmt.Errorf("variable %s is declared but defined nowhere", v.Name)
		}
		addr = a
	case ptxir.SpaceShared:
		off, ok := d.shared[v]
		if !ok {
			return 0, fmt.Errorf("BUG: shared variable %s has no place", v.Name)
		}
		addr, window = d.module.device.config.reservedShared()+uint64(off), memory.SharedBase
	case ptxir.SpaceLocal:
		off, ok := d.local[v]
		if !ok {
			return 0, fmt.Errorf("BUG: local variable %s has no place", v.Name)
		}
		addr, window = uint64(off), memory.LocalBase
	case ptxir.SpaceParam:
		addr, window = uint64(v.Offset), memory.ParamBase
	default:
		return 0, fmt.Errorf("variable %s in space %s has no address", v.Name, v.Space)
	}
	if generic {
		addr += window
	}
	return addr, nil
}

func (d *decoder) decodeBlock(f *ptxir.Func, ir *ptxir.Block, out *block) error {
	out.code = make([]lane.Inst, 0, len(ir.Instrs))
	out.count = uint64(ir.Count)
	for i := range ir.Instrs {
		if ir.Instrs[i].Op == ptxir.OpNop || ir.Instrs[i].Op == ptxir.OpPrefetch {
			continue
		}
		in, err := d.decodeInstr(&ir.Instrs[i])
		if err != nil {
			return err
		}
		if !d.hoist(&ir.Instrs[i], &in) {
			out.code = append(out.code, in)
		}
	}
	t := &ir.Term
	out.kind, out.Pos, out.Text = t.Kind, t.Pos, t.Text
	if len(t.Targets) > 0 {
		out.next = int32(t.Targets[0])
	}
	for _, target := range t.Targets {
		if target < 0 || target >= len(f.Blocks) {
			return fmt.Errorf("BUG: function %s: branch to block %d of %d", f.Name, target, len(f.Blocks))
		}
	}
	if d.checks != nil {
		if in, ok := d.checks.FollowEnd(t); ok {
			out.code = append(out.code, in)
		}
	}
	return d.decodeTerm(t, out)
}

// countWrites counts the instructions that write each register, up to 2.
func countWrites(f *ptxir.Func) []uint8 {
	writes := make([]uint8, len(f.Regs))
	visit := func(in *ptxir.Instr) {
		for _, r := range in.Dst {
			if r != ptxir.NoReg && writes[r] < 2 {
				writes[r]++
			}
			if in.Type == ptxir.B128 && r != ptxir.NoReg && len(in.Dst) == 1 {
				writes[r+1]++
			}
		}
	}
	for i := range f.Blocks {
		for j := range f.Blocks[i].Instrs {
			visit(&f.Blocks[i].Instrs[j])
		}
		if in := f.Blocks[i].Term.Instr; in != nil {
			visit(in)
		}
	}
	return writes
}

// hoist takes an instruction out of the code if its result is the same for the
// whole launch: the load of a parameter into a register that nothing else writes,
// or the conversion of such a register to a global address. The instruction is
// still counted.
func (d *decoder) hoist(ir *ptxir.Instr, in *lane.Inst) bool {
	if ir.Guard != ptxir.NoReg || d.fn.ir != &d.kernel.ir.Func {
		return false
	}
	for _, r := range ir.Dst {
		if r != ptxir.NoReg && d.writes[r] != 1 {
			return false
		}
	}
	if in.Params != nil {
		d.fn.loads = append(d.fn.loads, in.Params...)
		return true
	}
	if ir.Op != ptxir.OpCvta || in.Imm != 0 {
		return false
	}
	for _, p := range d.fn.loads {
		if p.Reg == in.A {
			p.Reg = in.D
			d.fn.loads = append(d.fn.loads, p)
			return true
		}
	}
	return false
}

func (d *decoder) decodeTerm(t *ptxir.Term, out *block) error {
	var err error
	switch t.Kind {
	case ptxir.TermBranch:
		out.other = int32(t.Targets[1])
		if out.pred, err = d.Operand(t.Pred, ptxir.ClassPred); t.Not {
			out.invert = register.Full
		}
	case ptxir.TermSwitch:
		out.pred, err = d.Operand(t.Index, ptxir.Class32)
		for _, target := range t.Targets {
			out.targets = append(out.targets, int32(target))
		}
	case ptxir.TermSync:
		var in lane.Inst
		in, err = d.decodeInstr(t.Instr)
		out.sync = &in
		if out.Text == "" {
			out.Text, out.Pos = t.Instr.Text, t.Instr.Pos
		}
	case ptxir.TermCall:
		out.call, err = d.decodeCall(t.Call)
	}
	return err
}

// decodeInstr decodes an instruction, with its checks.
func (d *decoder) decodeInstr(ir *ptxir.Instr) (lane.Inst, error) {
	in, err := d.Choose(ir)
	if err != nil {
		return lane.Inst{}, err
	}
	if d.checks != nil {
		d.checks.Watch(&in)
	}
	if err := d.Guard(&in); err != nil {
		return lane.Inst{}, err
	}
	if d.checks != nil {
		d.checks.Follow(&in)
	}
	return in, nil
}
