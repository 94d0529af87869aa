// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"strconv"

	"github.com/cudago/cudago/internal/ptx"
)

// local is a name of a function: a register or range of registers, a variable,
// a label, or a list of targets.
type local struct {
	name   string // of a register, or what those of a range begin with
	typ    Type
	vector uint32 // elements of each register; 1 for scalars
	count  uint32 // registers of a range; 1 without one
	ranged bool
	// regs are assigned at first use, one more than the Reg, so that 0 is none:
	// texts declare many more registers than they use.
	regs    []Reg
	v       *Var
	label   *label
	targets *ptx.Targets
	// Of a .calltargets list, from its first call on.
	callees   []*Func
	signature *ptx.Function
}

// label is a place in a function; block is -1 until it is reached.
type label struct {
	name  string
	line  int
	block int
}

// scope is the names of one pair of braces.
type scope struct {
	outer *scope
	names map[string]*local
	// ranges are the register ranges, by prefix, and lengths those of the prefixes.
	ranges  map[string]*local
	lengths map[int]bool
}

// enter opens a scope.
func (b *body) enter(block *ptx.Block) {
	b.scope = &scope{outer: b.scope, names: map[string]*local{}, ranges: map[string]*local{}, lengths: map[int]bool{}}
	b.labels(block)
}

// labels declares the labels that stand directly in the block: they alone can
// be used before they are set.
func (b *body) labels(block *ptx.Block) {
	for _, s := range block.Statements {
		if x, ok := s.(*ptx.Label); ok {
			b.name(x.Name, x.Line, &local{label: &label{name: x.Name, line: x.Line, block: -1}})
		}
	}
}

func (b *body) leave() { b.scope = b.scope.outer }

func (b *body) name(name string, line int, x *local) {
	inRange, _ := b.scope.inRange(name)
	if b.scope.names[name] != nil || inRange != nil {
		b.l.fail(line, "%s is declared twice", name)
	}
	b.scope.names[name] = x
}

func (b *body) declare(x *ptx.Variable) {
	switch x.Space {
	case ptx.SpaceReg, ptx.SpaceSReg:
		b.declareRegister(x)
	case ptx.SpaceParam:
		v := &Var{
			Name: x.Name, Space: SpaceLocal, Type: elementType(x), Align: x.Alignment(),
			Size: max(x.Bytes(), 1), Pos: Pos{Line: x.Line},
		}
		b.f.Vars = append(b.f.Vars, v)
		b.name(x.Name, x.Line, &local{v: v})
	default:
		v := b.l.variable(x)
		if v.Space == SpaceLocal || v.Space == SpaceShared {
			b.f.Vars = append(b.f.Vars, v)
		} else {
			b.l.module.Vars = append(b.l.module.Vars, v)
		}
		b.name(x.Name, x.Line, &local{v: v})
	}
}

func (b *body) declareRegister(x *ptx.Variable) {
	if len(x.Dims) > 0 {
		b.l.fail(x.Line, "%s: registers have no dimensions", x.Name)
	}
	if x.Init != nil {
		b.l.fail(x.Line, "%s: registers have no initial value", x.Name)
	}
	r := &local{name: x.Name, typ: elementType(x), vector: uint32(max(x.Vector, 1)), count: max(x.Range, 1), ranged: x.Range > 0}
	if x.Range == 0 {
		b.name(x.Name, x.Line, r)
		return
	}
	if b.scope.ranges[x.Name] != nil {
		b.l.fail(x.Line, "%s<%d> is declared twice", x.Name, x.Range)
	}
	b.scope.ranges[x.Name] = r
	b.scope.lengths[len(x.Name)] = true
}

// find resolves a name, innermost scope first. index is its place in a range.
func (b *body) find(name string) (x *local, index uint32) {
	for s := b.scope; s != nil; s = s.outer {
		if x, index = s.inRange(name); x != nil {
			return x, index
		}
		if x = s.names[name]; x != nil {
			return x, 0
		}
	}
	return nil, 0
}

// inRange finds the register range that a name with digits at its end belongs
// to. The prefix may end in digits too, as in %p1<4>, so each cut is tried.
// As ptxas has it, %r01 is %r1.
func (s *scope) inRange(name string) (x *local, index uint32) {
	start := len(name)
	for start > 1 && name[start-1] >= '0' && name[start-1] <= '9' {
		start--
	}
	for i := start; i < len(name); i++ {
		if !s.lengths[i] {
			continue // a name may have many digits
		}
		r := s.ranges[name[:i]]
		if r == nil {
			continue
		}
		n, err := strconv.ParseUint(name[i:], 10, 32)
		if err == nil && uint32(n) < r.count {
			return r, uint32(n)
		}
	}
	return nil, 0
}

// register returns element e of the register at index of x.
func (b *body) register(x *local, index, e uint32) Reg {
	if x.regs == nil {
		x.regs = make([]Reg, x.count*x.vector)
	}
	slot := &x.regs[index*x.vector+e]
	if *slot == 0 {
		*slot = b.newReg(x.typ) + 1
		for r := *slot - 1; int(r) < len(b.f.Names); r++ { // the two of a b128
			b.f.Names[r] = x.registerName(index, e)
		}
	}
	return *slot - 1
}

// registerName is what the PTX calls element e of the register at index of x.
func (x *local) registerName(index, e uint32) string {
	name := x.name
	if x.ranged {
		name += strconv.FormatUint(uint64(index), 10)
	}
	if x.vector > 1 {
		name += "." + string("xyzw"[e])
	}
	return name
}

// newReg adds a register for a value of type t. A b128 takes two.
func (b *body) newReg(t Type) Reg {
	r := b.addReg(t.Class())
	if t == B128 {
		b.addReg(Class64)
	}
	return r
}

func (b *body) addReg(c Class) Reg {
	b.f.Regs, b.f.Names = append(b.f.Regs, c), append(b.f.Names, "")
	return Reg(len(b.f.Regs) - 1)
}
