// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/matrix"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/numeric"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// execFn runs one instruction for the lanes of mask, which is never 0.
type execFn func(w *warp, in *inst, mask uint32)

// inst is a decoded instruction. Operands are byte offsets into the frame; see
// register_unsafe.go.
type inst struct {
	fn         execFn
	d, a, b, c uint32
	imm        uint64
	more       []uint32    // operands beyond d, a, b and c: vector elements, second destinations
	params     []paramLoad // loads of kernel parameters
	parts      []inst      // vector accesses: one for each element
	site       uint32      // number of the memory instruction
	members    uint32      // collectives: the member mask operand
	mode       ptxir.Mode
	guard      uint32 // guarded: the predicate, its inversion, and what to run
	invert     uint32
	guarded    execFn
	combine32  numeric.Combine32 // atomics
	combine64  numeric.Combine64
	product    *matrix.Product // mma
	ir         *ptxir.Instr
}

// block is a decoded basic block.
type block struct {
	code    []inst
	count   uint64 // PTX instructions a pass stands for
	kind    ptxir.TermKind
	pred    uint32 // TermBranch: predicate; TermSwitch: index
	invert  uint32 // TermBranch: all ones if negated
	next    int32
	other   int32 // TermBranch: where lanes without the predicate go
	cost    int   // of a jump back from here, in fuel
	targets []int32
	sync    *inst
	call    *callSite
	pos     ptxir.Pos
	text    string
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
	loads      []paramLoad // registers that hold a parameter for the whole launch
	params     []uint32    // offsets of parameters among the function's local variables
	rets       []uint32
	followed   int32 // registers whose lanes a check follows; see follow
	unwritten  []unwrittenRegister
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
	fn       specialFn
	perBlock bool // changes from block to block; others stay for the whole launch
}

// decoder decodes one kernel and the functions it calls.
type decoder struct {
	module *Module
	kernel *Kernel
	funcs  map[*ptxir.Func]*function
	shared map[*ptxir.Var]uint32
	local  map[*ptxir.Var]uint32
	// known tells the constants of the function being decoded, by register.
	known map[ptxir.Reg]*ptxir.Const
	fn    *function
	sites uint32
	// writes counts the instructions that write each register, up to 2.
	writes []uint8

	watched     bool   // put checks around memory accesses
	accessCount uint32 // of a watched kernel
	// numbers are those of the followed registers of the function being decoded;
	// nil if there are none.
	numbers []int32
	pieces  map[*ptxir.Instr]bool // of that function's; see findPieces
}

// decodeKernel decodes a kernel for m's device, with checks or without.
//
// Preconditions: m.mu must be locked.
func (m *Module) decodeKernel(ir *ptxir.Kernel, watched bool) (*Kernel, error) {
	k := &Kernel{module: m, ir: ir}
	d := &decoder{
		module: m, kernel: k, watched: watched,
		funcs: map[*ptxir.Func]*function{}, shared: map[*ptxir.Var]uint32{}, local: map[*ptxir.Var]uint32{},
	}
	reach, err := m.reachable(&ir.Func)
	if err != nil {
		return nil, err
	}
	d.layoutShared(reach)
	if watched {
		d.namePlaces()
	}
	for _, f := range reach {
		if err := d.declare(f); err != nil {
			return nil, fmt.Errorf("ptxvm: kernel %s: %w", ir.Name, err)
		}
		if watched {
			d.nameLocals(f)
		}
	}
	for _, f := range reach {
		if err := d.decodeFunc(f); err != nil {
			return nil, fmt.Errorf("ptxvm: kernel %s: %w", ir.Name, err)
		}
	}
	k.entry = d.funcs[&ir.Func]
	k.sites = d.sites
	k.localBytes = d.localNeed(reach)
	return k, nil
}

// declare lays out a function's registers and local variables.
func (d *decoder) declare(f *ptxir.Func) error {
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
	return nil
}

func (d *decoder) decodeFunc(f *ptxir.Func) error {
	fn := d.funcs[f]
	d.fn = fn
	d.known = map[ptxir.Reg]*ptxir.Const{}
	for i := range f.Consts {
		c := &f.Consts[i]
		d.known[c.Reg] = c
		if err := d.addConst(fn, c); err != nil {
			return fmt.Errorf("function %s: %w", f.Name, err)
		}
	}
	for _, s := range f.Specials {
		fill := fillSpecial(s.ID)
		if fill == nil {
			return fmt.Errorf("function %s: special register %d is not supported", f.Name, s.ID)
		}
		fn.specials = append(fn.specials, specialUse{reg: fn.offsets[s.Reg], index: s.Reg, fn: fill, perBlock: perBlock(s.ID)})
	}
	fn.blocks = make([]block, len(f.Blocks))
	d.writes = countWrites(f)
	d.numberFollowed(f)
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

// address returns a variable's address in its own space, or generic. Local
// variables' addresses lack their frame's place.
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
		addr, window = uint64(off), memory.SharedBase
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
	out.code = make([]inst, 0, len(ir.Instrs))
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
	out.kind, out.pos, out.text = t.Kind, t.Pos, t.Text
	if len(t.Targets) > 0 {
		out.next = int32(t.Targets[0])
	}
	for _, target := range t.Targets {
		if target < 0 || target >= len(f.Blocks) {
			return fmt.Errorf("BUG: function %s: branch to block %d of %d", f.Name, target, len(f.Blocks))
		}
	}
	d.followEnd(t, out)
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

// hoist takes an instruction out of the code whose result is the same for the
// whole launch: the load of a parameter into a register that nothing else
// writes, and the conversion of such a register to a global address. It is
// still counted.
func (d *decoder) hoist(ir *ptxir.Instr, in *inst) bool {
	if ir.Guard != ptxir.NoReg || d.fn.ir != &d.kernel.ir.Func {
		return false
	}
	for _, r := range ir.Dst {
		if r != ptxir.NoReg && d.writes[r] != 1 {
			return false
		}
	}
	if in.params != nil {
		d.fn.loads = append(d.fn.loads, in.params...)
		return true
	}
	if ir.Op != ptxir.OpCvta || in.imm != 0 {
		return false
	}
	for _, p := range d.fn.loads {
		if p.reg == in.a {
			p.reg = in.d
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
		if out.pred, err = d.operand(t.Pred, ptxir.ClassPred); t.Not {
			out.invert = register.Full
		}
	case ptxir.TermSwitch:
		out.pred, err = d.operand(t.Index, ptxir.Class32)
		for _, target := range t.Targets {
			out.targets = append(out.targets, int32(target))
		}
	case ptxir.TermSync:
		var in inst
		in, err = d.decodeInstr(t.Instr)
		out.sync = &in
		if out.text == "" {
			out.text, out.pos = t.Instr.Text, t.Instr.Pos
		}
	case ptxir.TermCall:
		out.call, err = d.decodeCall(t.Call)
	}
	return err
}

// decodeInstr finds the executor of an instruction and resolves its operands.
func (d *decoder) decodeInstr(ir *ptxir.Instr) (inst, error) {
	in := inst{d: register.None, a: register.None, b: register.None, c: register.None, members: register.None, ir: ir, mode: ir.Mode, imm: uint64(ir.Imm)}
	sel := &selection{d: d, ir: ir, in: &in}
	if err := sel.choose(); err != nil {
		return inst{}, fmt.Errorf("PTX line %d: %s: %w", ir.Pos.Line, instrText(ir), err)
	}
	if d.watched {
		d.watch(&in)
	}
	if ir.Guard != ptxir.NoReg {
		p, err := d.operand(ir.Guard, ptxir.ClassPred)
		if err != nil {
			return inst{}, err
		}
		in.guard, in.guarded, in.fn = p, in.fn, runGuarded
		if ir.GuardNot {
			in.invert = register.Full
		}
	}
	if d.watched {
		d.follow(&in)
	}
	return in, nil
}

func instrText(ir *ptxir.Instr) string {
	if ir.Text != "" {
		return ir.Text
	}
	return ir.Op.String() + "." + ir.Type.String()
}

// runGuarded runs a guarded instruction for the lanes whose predicate allows it.
func runGuarded(w *warp, in *inst, mask uint32) {
	if mask &= *w.Pred(in.guard) ^ in.invert; mask != 0 {
		in.guarded(w, in, mask)
	}
}

// operand returns a register's offset, checked to be of the class. Class16 and
// Class32 share their storage, but not their meaning.
func (d *decoder) operand(r ptxir.Reg, class ptxir.Class) (uint32, error) {
	if r == ptxir.NoReg || int(r) >= len(d.fn.ir.Regs) {
		return 0, fmt.Errorf("an operand is missing")
	}
	if got := d.fn.ir.Regs[r]; got != class {
		return 0, fmt.Errorf("an operand is of the wrong size: want %s, got %s", classNames[class], classNames[got])
	}
	return d.fn.offsets[r], nil
}

var classNames = [...]string{"predicate", "16 bits", "32 bits", "64 bits"}
