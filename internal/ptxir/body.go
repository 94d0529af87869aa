// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"fmt"

	"github.com/cudago/cudago/internal/ptx"
)

// body is the state of lowering one function's body. Where a method finds that
// the instruction at hand is no PTX it calls invalid, and where it cannot run
// refuse; both leave by panic.
type body struct {
	l     *loader
	s     *symbol
	f     *Func
	entry bool
	scope *scope

	blocks []*block
	cur    *block
	fixups []fixup
	listed int // labels of the lists that brx.idx has branched to

	// The instruction at hand.
	ins      *ptx.Instruction
	v        *variant
	text     string
	pos      Pos
	guard    Reg
	guardNot bool

	consts    map[constKey]Reg
	addresses map[addressKey]Reg
	specials  map[SpecialID]Reg
	carry     Reg
	regSlab   []Reg
}

// block is a Block whose number may still change. Its Term's Targets hold
// numbers in body.blocks until order renumbers them.
type block struct{ Block }

// fixup is a target that waits for its label.
type fixup struct {
	block, target int
	label         *label
	line          int
}

type constKey struct {
	class Class
	bits  uint64
}

type addressKey struct {
	v       *Var
	fn      *Func
	addend  uint64
	class   Class
	generic bool
}

func (l *loader) lowerBody(s *symbol) {
	b := &body{
		l: l, s: s, f: s.fn.out, entry: s.kern != nil,
		guard: NoReg, carry: NoReg,
		consts: map[constKey]Reg{}, addresses: map[addressKey]Reg{}, specials: map[SpecialID]Reg{},
	}
	defer func() {
		if e := recover(); e != nil {
			refused, ok := e.(*UnsupportedError)
			if !ok {
				panic(e)
			}
			b.f.Err = refused
			b.f.Blocks = nil
		}
	}()
	b.startBlock()
	b.parameterScope(s.fn.tree)
	b.loadRegisterParams()
	// The body's own names stand beside the parameters.
	b.labels(s.fn.tree.Body)
	b.run(s.fn.tree.Body)
	b.finish()
}

// parameterScope declares parameters and return parameters.
func (b *body) parameterScope(x *ptx.Function) {
	b.scope = &scope{names: map[string]*local{}, ranges: map[string]*local{}, lengths: map[int]bool{}}
	declare := func(list []*ptx.Variable, vars []*Var) {
		for i, p := range list {
			if p.Space == ptx.SpaceReg {
				b.declareRegister(p)
				continue
			}
			b.name(p.Name, p.Line, &local{v: vars[i]})
		}
	}
	declare(x.Params, b.f.Params)
	declare(x.Returns, b.f.Rets)
}

// loadRegisterParams fetches .reg parameters from where the call put them.
func (b *body) loadRegisterParams() {
	for i, p := range b.s.fn.tree.Params {
		if p.Space == ptx.SpaceReg {
			b.pos = b.f.Params[i].Pos
			x, _ := b.find(p.Name)
			b.moveParam(OpLd, x, b.f.Params[i])
		}
	}
}

// storeRegisterReturns puts .reg return parameters where the caller looks.
func (b *body) storeRegisterReturns() {
	for i, p := range b.s.fn.tree.Returns {
		if p.Space == ptx.SpaceReg {
			x, _ := b.find(p.Name)
			b.moveParam(OpSt, x, b.f.Rets[i])
		}
	}
}

func (b *body) moveParam(op Op, x *local, v *Var) {
	in := Instr{Op: op, Type: memoryType(x.typ), Space: SpaceLocal, Src: b.regs(b.address(v))}
	list := make([]Reg, x.vector)
	for e := range list {
		list[e] = b.register(x, 0, uint32(e))
	}
	if x.typ == Pred {
		// A predicate travels as a byte.
		b.movePredicate(in, op, list[0])
		return
	}
	b.wholeWords(&in.Type, &list)
	if op == OpLd {
		in.Dst = list
	} else {
		in.Src = append(in.Src, list...)
	}
	b.emitPlain(in)
}

func (b *body) movePredicate(in Instr, op Op, p Reg) {
	tmp := b.newReg(U8)
	if op == OpLd {
		in.Dst = b.regs(tmp)
		b.emitPlain(in)
		b.emitPlain(Instr{Op: OpSetp, Type: U16, From: U16, Cmp: CmpNe, Dst: b.regs(p), Src: b.regs(tmp, b.constReg(U16, 0))})
		return
	}
	b.emitPlain(Instr{Op: OpSelp, Type: U16, Dst: b.regs(tmp), Src: b.regs(b.constReg(U16, 1), b.constReg(U16, 0), p)})
	in.Src = append(in.Src, tmp)
	b.emitPlain(in)
}

func memoryType(t Type) Type {
	if t == Pred {
		return U8
	}
	return t
}

func (b *body) statements(block *ptx.Block) {
	b.enter(block)
	b.run(block)
	b.leave()
}

func (b *body) run(block *ptx.Block) {
	for _, s := range block.Statements {
		switch x := s.(type) {
		case *ptx.Instruction:
			b.instruction(x)
		case *ptx.Variable:
			b.declare(x)
		case *ptx.Targets:
			b.name(x.Label, x.Line, &local{targets: x})
		case *ptx.Label:
			b.place(b.scope.names[x.Name].label)
		case *ptx.Block:
			b.statements(x)
		case *ptx.Loc:
			b.pos.File, b.pos.SourceLine = x.File, x.Line
			if x.File >= len(b.l.module.Files) {
				b.pos.File, b.pos.SourceLine = 0, 0
			}
		}
	}
}

func (b *body) instruction(x *ptx.Instruction) {
	b.ins, b.v = x, b.l.variant(x.Mnemonic)
	b.pos.Line = int(x.Line)
	b.text = b.l.cleanText(x)
	switch {
	case b.v.invalid != "":
		b.invalid("%s", b.v.invalid)
	case b.v.refuse != nil:
		b.refuseWith(*b.v.refuse)
	}
	b.guard, b.guardNot = NoReg, false
	if x.Guard.Name != "" {
		b.guard, b.guardNot = b.guardReg(x.Guard.Name), x.Guard.Negated
	}
	b.cur.Count++
	if b.v.form.lower != nil {
		b.v.form.lower(b)
	} else {
		plain(b)
	}
}

func (b *body) guardReg(name string) Reg {
	x, index := b.find(name)
	if x == nil || x.typ != Pred {
		b.invalid("the guard %s is not a predicate register", name)
	}
	return b.register(x, index, 0)
}

// cleanText is an instruction on one line, as messages show it.
func (l *loader) cleanText(x *ptx.Instruction) string {
	if x.Text == "" {
		return x.String()
	}
	l.scratch = l.scratch[:0]
	space := false
	for i := range len(x.Text) {
		switch c := x.Text[i]; c {
		case ' ', '\t', '\n', '\r':
			space = true
		default:
			if space {
				l.scratch = append(l.scratch, ' ')
				space = false
			}
			l.scratch = append(l.scratch, c)
		}
	}
	return string(l.scratch)
}

// invalid stops lowering: the instruction is not valid PTX.
func (b *body) invalid(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	panic(ptx.ErrorAt(b.l.tree.Source, int(b.ins.Line), int(b.ins.Column), msg))
}

// refuse gives up the function: the instruction is valid but cannot run here.
// The hint says what to write instead.
func (b *body) refuse(hint, format string, args ...any) {
	b.refuseWith(UnsupportedError{Reason: fmt.Sprintf(format, args...), Hint: hint})
}

func (b *body) refuseWith(e UnsupportedError) {
	e.Module, e.Function, e.Line, e.Instruction = b.l.module.Name, b.s.name, b.pos.Line, b.text
	if b.pos.File > 0 && b.pos.File < len(b.l.module.Files) {
		e.SourceFile, e.SourceLine = b.l.module.Files[b.pos.File], b.pos.SourceLine
	}
	panic(&e)
}

// startBlock begins a block and makes it the current one.
func (b *body) startBlock() int {
	b.cur = &block{}
	b.blocks = append(b.blocks, b.cur)
	return len(b.blocks) - 1
}

// place sets a label here.
func (b *body) place(l *label) {
	// The current block may be empty, as after a branch; then it is the place.
	at := len(b.blocks) - 1
	if len(b.cur.Instrs) > 0 || b.cur.Count > 0 || at == 0 {
		before := b.cur
		at = b.startBlock()
		before.Term = Term{Kind: TermJump, Targets: []int{at}, Pos: b.pos}
	}
	l.block = at
}

// end gives the current block its terminator and begins the next. Targets of
// -1 are the next block.
func (b *body) end(t Term) {
	done := b.cur
	t.Pos, t.Text = b.pos, b.text
	next := b.startBlock()
	for i, n := range t.Targets {
		if n == following {
			t.Targets[i] = next
		}
	}
	done.Term = t
}

// following stands for the block after a terminator.
const following = -1

// emit adds an instruction under the guard of the instruction at hand.
func (b *body) emit(in Instr) {
	if in.Op.Convergent() {
		b.sync(in)
		return
	}
	in.Guard, in.GuardNot = b.guard, b.guardNot
	in.Pos, in.Text = b.pos, b.text
	b.cur.Instrs = append(b.cur.Instrs, in)
}

// emitPlain adds an instruction that only writes registers of our own, for
// which the guard does not matter.
func (b *body) emitPlain(in Instr) {
	in.Guard, in.Pos, in.Text = NoReg, b.pos, b.text
	b.cur.Instrs = append(b.cur.Instrs, in)
}

// sync ends the block with an operation that other lanes take part in.
func (b *body) sync(in Instr) {
	in.Guard, in.Pos, in.Text = NoReg, b.pos, b.text
	b.guarded(func() {
		b.end(Term{Kind: TermSync, Instr: &in, Targets: []int{following}})
	})
}

// guarded runs terminate, which ends a block, where the guard holds, and goes
// around it elsewhere.
func (b *body) guarded(terminate func()) {
	if b.guard == NoReg {
		terminate()
		return
	}
	// The instruction counts where it stands, not where it is tested.
	b.cur.Count--
	test := b.cur
	b.end(Term{Kind: TermBranch, Pred: b.guard, Not: b.guardNot, Targets: []int{following, following}})
	b.cur.Count++
	terminate()
	if len(b.cur.Instrs) > 0 {
		// Results of a call, which only the lanes that called may load.
		loads := b.cur
		loads.Term = Term{Kind: TermJump, Targets: []int{b.startBlock()}, Pos: b.pos}
	}
	test.Term.Targets[1] = len(b.blocks) - 1
}

// finish resolves the labels and orders the blocks.
func (b *body) finish() {
	// Falling off the end returns.
	if b.entry {
		b.cur.Term.Kind = TermExit
	} else {
		b.storeRegisterReturns()
		b.cur.Term.Kind = TermRet
	}
	b.cur.Term.Pos = b.pos
	for _, f := range b.fixups {
		b.blocks[f.block].Term.Targets[f.target] = f.label.block
	}
	if b.f.Blocks = order(b.blocks); b.f.Blocks == nil {
		b.l.fail(b.pos.Line, "loops are nested deeper than %d", mostLoops)
	}
	forward(b.f)
}
