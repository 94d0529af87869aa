// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"github.com/cudago/cudago/internal/ptx"
)

// instr returns an Instr with the variant's modifiers filled in.
func (b *body) instr() Instr {
	v := b.v
	in := Instr{
		Op: v.form.op, Mod: v.mod, Round: v.round, Cmp: v.cmp, Bool: v.bool,
		Space: v.space, Atom: v.atom, Mode: v.mode,
	}
	if len(v.types) > 0 {
		in.Type = v.types[0]
	}
	if len(v.types) > 1 {
		in.From = v.types[1]
	}
	// Arithmetic without a rounding modifier rounds to the nearest.
	if in.Round == RoundNone && in.Type.Float() {
		switch in.Op {
		case OpAdd, OpSub, OpMul, OpFma:
			in.Round = RoundRN
		}
	}
	return in
}

// plain lowers an instruction whose operands the table row describes, a letter
// each:
//
//	d destination of the type     w of twice its width   u of 32 bits   P predicate
//	a source of the type          A of twice its width   i of 32 bits   p predicate
//	f source of the second type   n constant, becomes Imm
//
// "?" after a letter makes it optional.
func plain(b *body) {
	in := b.instr()
	b.operands(&in)
	b.emit(in)
}

// operands fills in Dst, Src and Imm as the row's args say.
func (b *body) operands(in *Instr) {
	args := b.v.form.args
	ops := b.ins.Operands
	n := 0
	for i := 0; i < len(args); i++ {
		optional := i+1 < len(args) && args[i+1] == '?'
		if n == len(ops) {
			if !optional {
				b.invalid("%s needs more operands than %d", b.ins.Mnemonic, len(ops))
			}
			break
		}
		b.operand(in, args[i], &ops[n])
		n++
		if optional {
			i++
		}
	}
	if n != len(ops) {
		b.invalid("%s takes %d operands, got %d", b.ins.Mnemonic, n, len(ops))
	}
}

func (b *body) operand(in *Instr, letter byte, x *ptx.Operand) {
	switch letter {
	case 'd':
		in.Dst = b.push(in.Dst, b.dest(x, in.Type))
	case 'w':
		in.Dst = b.push(in.Dst, b.dest(x, widened(in.Type)))
	case 'u':
		in.Dst = b.push(in.Dst, b.dest(x, U32))
	case 'P':
		in.Dst = b.push(in.Dst, b.dest(x, Pred))
	case 'a':
		in.Src = b.push(in.Src, b.source(x, in.Type))
	case 'A':
		in.Src = b.push(in.Src, b.source(x, widened(in.Type)))
	case 'f':
		in.Src = b.push(in.Src, b.source(x, in.From))
	case 'i':
		in.Src = b.push(in.Src, b.source(x, U32))
	case 'p':
		in.Src = b.push(in.Src, b.predSource(x))
	case 'n':
		in.Imm = int64(b.constant(x))
	default:
		panic("BUG: opcode table: " + b.v.form.name + ": letter " + string(letter))
	}
}

// push appends to a list that starts in the slab: most lists have up to four.
func (b *body) push(list []Reg, r Reg) []Reg {
	if list == nil {
		list = b.room(4)
	}
	return append(list, r)
}

// regs makes a list of registers.
func (b *body) regs(list ...Reg) []Reg {
	return append(b.room(len(list)), list...)
}

// room returns an empty list with room for n registers.
func (b *body) room(n int) []Reg {
	if n > len(b.regSlab) {
		b.regSlab = make([]Reg, max(512, n))
	}
	list := b.regSlab[:0:n]
	b.regSlab = b.regSlab[n:]
	return list
}

// count requires n operands.
func (b *body) count(n ...int) {
	got := len(b.ins.Operands)
	for _, want := range n {
		if got == want {
			return
		}
	}
	b.invalid("%s takes %d operands, got %d", b.ins.Mnemonic, n[0], got)
}

// widened is the integer type of twice the width.
func widened(t Type) Type {
	switch t {
	case U16:
		return U32
	case S16:
		return S32
	case U32:
		return U64
	case S32:
		return S64
	}
	panic("BUG: no type is twice as wide as " + t.String())
}

var components = map[string]uint32{"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}

// declared resolves an operand to a register of the function, and its type.
// ok is false when the name is no register.
func (b *body) declared(x *ptx.Operand) (r Reg, t Type, ok bool) {
	n, index := b.find(x.Name)
	if n == nil || n.typ == TypeNone {
		return NoReg, TypeNone, false
	}
	if x.Kind == ptx.OperandElement {
		b.invalid("%s is a register, not an array", x.Name)
	}
	e := uint32(0)
	if x.Component != "" {
		var known bool
		if e, known = components[x.Component]; !known || e >= n.vector || n.vector == 1 {
			b.invalid("%s has no component .%s", x.Name, x.Component)
		}
	} else if n.vector > 1 {
		b.invalid("%s is a vector of %d: name a component", x.Name, n.vector)
	}
	return b.register(n, index, e), n.typ, true
}

// plus returns a register with the operand's offset added to r: ptxas takes
// reg+constant wherever it takes a register as source.
func (b *body) plus(x *ptx.Operand, r Reg, t Type) Reg {
	if x.Value.Bits == 0 {
		return r
	}
	if t == Pred || t == B128 {
		b.invalid("nothing can be added to %s", x.Name)
	}
	u := unsigned(t)
	sum := b.newReg(t)
	b.emitPlain(Instr{Op: OpAdd, Type: u, Dst: b.regs(sum), Src: b.regs(r, b.constReg(u, immediate(x.Value, u)))})
	return sum
}

// destOrSink is dest for the operands that may be "_", for which it is NoReg.
func (b *body) destOrSink(x *ptx.Operand, t Type) Reg {
	if x.Kind == ptx.OperandSink {
		return NoReg
	}
	return b.dest(x, t)
}

// dest returns the register that an operand of type t writes.
func (b *body) dest(x *ptx.Operand, t Type) Reg {
	if x.Kind != ptx.OperandName || x.Negated {
		b.invalid("%s: the destination must be a register", b.ins.Mnemonic)
	}
	r, rt, ok := b.declared(x)
	if !ok {
		b.invalid("%s is not a declared register", x.Name)
	}
	if x.Value.Bits != 0 {
		b.invalid("%s: nothing can be added to a destination", x.Name)
	}
	b.fits(x, rt, t)
	return r
}

// fits requires that a register of type got holds exactly a value of type want.
//
// PTX ISA, "Operand Type Information".
func (b *body) fits(x *ptx.Operand, got, want Type) {
	same := got.Size() == want.Size() && (got == Pred) == (want == Pred)
	if !same || !agree(got, want) {
		b.invalid("%s is declared .%s, which does not fit the .%s of %s", x.Name, got, want, b.ins.Mnemonic)
	}
}

// agree reports whether a register declared got may hold a value of type want,
// sizes apart: bits go with everything, integers with integers of either
// signedness, and floats with the same format.
func agree(got, want Type) bool {
	switch {
	case isBits(got) || isBits(want):
		return true
	case got == F16x2 && !want.Float():
		return true
	}
	return got == want || !got.Float() && !want.Float()
}

// source returns a register with the operand's value as type t.
func (b *body) source(x *ptx.Operand, t Type) Reg {
	switch x.Kind {
	case ptx.OperandImmediate:
		b.checkLiteral(x.Value, t)
		return b.constReg(t, immediate(x.Value, t))
	case ptx.OperandName, ptx.OperandElement:
		if t == Pred {
			return b.predSource(x)
		}
		if x.Negated || x.Minus {
			b.invalid("only a predicate can be negated, by !")
		}
		return b.named(x, t)
	}
	b.invalid("%s: expected a register or constant as source", b.ins.Mnemonic)
	return NoReg
}

// checkLiteral refuses a literal that the type does not take.
func (b *body) checkLiteral(x ptx.Literal, t Type) {
	var ok bool
	switch {
	case t == F32 || t == F64:
		ok = !x.Integer()
	case isBits(t) && t.Size() == 8:
		ok = x.Kind != ptx.LiteralF32
	case isBits(t) && t.Size() == 4:
		ok = x.Kind != ptx.LiteralF64
	default:
		// The 16-bit and packed formats have no literals.
		ok = x.Integer() && !t.Float()
	}
	if !ok {
		b.invalid("%s is no constant of type .%s", x, t)
	}
}

// named returns a register with the value of a name: a register, a special
// register, or an address.
func (b *body) named(x *ptx.Operand, t Type) Reg {
	if r, rt, ok := b.declared(x); ok {
		b.fits(x, rt, t)
		return b.plus(x, r, rt)
	}
	// As ptxas has it, few instructions take special registers and addresses.
	switch op := b.v.form.op; op {
	case OpMov, OpIsspacep, OpCvt:
		if id, st := b.specialName(x); id != SpecialNone && (op != OpCvt || !b.v.types[0].Float()) {
			b.checkWidth(x.Name, st, t)
			return b.special(id, st, t)
		}
		if op != OpCvt {
			return b.symbolAddress(x, t)
		}
	}
	id, _ := b.specialName(x)
	if n, _ := b.find(x.Name); n == nil && id == SpecialNone && b.symbol(x.Name) == nil {
		b.invalid("%s is not declared", x.Name)
	}
	b.invalid("%s takes registers and constants, and %s is neither", b.ins.Mnemonic, x.Name)
	return NoReg
}

// predSource returns a predicate register; a negated one is computed.
func (b *body) predSource(x *ptx.Operand) Reg {
	if x.Kind == ptx.OperandImmediate {
		return b.constReg(Pred, immediate(x.Value, Pred))
	}
	if x.Kind != ptx.OperandName {
		b.invalid("%s: expected a predicate", b.ins.Mnemonic)
	}
	plain := *x
	plain.Negated = false
	r, t, ok := b.declared(&plain)
	if !ok {
		id, st := b.specialName(x)
		if id == SpecialNone {
			b.invalid("%s is not a declared register", x.Name)
		}
		r, t = b.special(id, st, Pred), Pred
	}
	b.fits(x, t, Pred)
	if !x.Negated {
		return r
	}
	not := b.newReg(Pred)
	b.emitPlain(Instr{Op: OpNot, Type: Pred, Dst: b.regs(not), Src: b.regs(r)})
	return not
}

// pair splits p|q.
func (b *body) pair(x *ptx.Operand) (first, second *ptx.Operand) {
	if x.Kind != ptx.OperandPair {
		b.invalid("%s needs two destinations, joined by |", b.ins.Mnemonic)
	}
	return &x.Elems[0], &x.Elems[1]
}

// constant requires an immediate.
func (b *body) constant(x *ptx.Operand) uint64 {
	if x.Kind != ptx.OperandImmediate || !x.Value.Integer() {
		b.invalid("%s: expected an integer constant", b.ins.Mnemonic)
	}
	return x.Value.Bits
}

// constReg returns the register that holds bits as a value of type t.
func (b *body) constReg(t Type, bits uint64) Reg {
	key := constKey{t.Class(), bits}
	r, ok := b.consts[key]
	if !ok {
		r = b.newReg(t)
		b.consts[key] = r
		b.f.Consts = append(b.f.Consts, Const{Reg: r, Bits: bits})
	}
	return r
}

// address returns the register that holds a variable's address in its space:
// 32 bits where offsets do, 64 elsewhere.
func (b *body) address(v *Var) Reg {
	class := Class32
	if v.Space == SpaceGlobal || v.Space == SpaceConst {
		class = Class64
	}
	return b.addressReg(addressKey{v: v, class: class})
}

func (b *body) addressReg(key addressKey) Reg {
	r, ok := b.addresses[key]
	if !ok {
		r = b.addReg(key.class)
		b.addresses[key] = r
		b.f.Consts = append(b.f.Consts, Const{Reg: r, Bits: key.addend, Var: key.v, Func: key.fn, Generic: key.generic})
	}
	return r
}

// symbol is what a name of the module means in this function.
func (b *body) symbol(name string) *symbol { return b.l.lookup(name, b.s.fn.item) }

// variable resolves a name to a variable; ok is false when it is none.
func (b *body) variable(name string) (v *Var, ok bool) {
	if n, _ := b.find(name); n != nil {
		return n.v, n.v != nil
	}
	s := b.symbol(name)
	if s == nil || s.v == nil {
		return nil, false
	}
	v = s.v
	if v.Extern && v.Space != SpaceShared {
		b.refuse(hintLink, "%s is declared .extern and not defined in this module", name)
	}
	return v, true
}

// symbolAddress returns a register with the address of a variable or function.
func (b *body) symbolAddress(x *ptx.Operand, t Type) Reg {
	if x.Component != "" {
		b.invalid("%s.%s is not a register", x.Name, x.Component)
	}
	class := t.Class()
	if v, ok := b.variable(x.Name); ok {
		if class == Class16 && v.Space == SpaceShared && !t.Float() {
			b.refuse(hintWide, "the address of %s in 16 bits is not simulated", x.Name)
		}
		if class != Class32 && class != Class64 || t.Float() {
			b.invalid("the address of %s does not fit a .%s", x.Name, t)
		}
		addend := x.Value.Bits
		if x.Kind == ptx.OperandElement {
			addend *= uint64(v.Type.Size())
		}
		return b.indexed(x, v, b.addressReg(addressKey{v: v, addend: addend, class: class}))
	}
	if s := b.symbol(x.Name); s != nil && s.fn != nil {
		switch {
		case class == Class32:
			b.refuse(hintWide, "the address of %s in 32 bits is not simulated", x.Name)
		case class != Class64:
			b.invalid("the address of %s needs a 64-bit register", x.Name)
		case x.Value.Bits != 0:
			b.invalid("nothing can be added to the address of %s", x.Name)
		}
		if s.fn.tree.Body == nil {
			b.refuse(hintLink, "the address of %s is taken, which is not defined in this module", x.Name)
		}
		return b.addressReg(addressKey{fn: s.fn.out, addend: x.Value.Bits, class: class})
	}
	b.invalid("%s is not declared", x.Name)
	return NoReg
}

func (b *body) carryFlag() Reg {
	if b.carry == NoReg {
		b.carry = b.newReg(Pred)
	}
	return b.carry
}
