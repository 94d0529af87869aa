// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"slices"
	"strings"

	"github.com/cudago/cudago/internal/ptx"
)

// call lowers call [(returns),] function [, (parameters)] [, targets].
//
// PTX ISA, "Control Flow Instructions: call".
func call(b *body) {
	ops := b.ins.Operands
	var rets, args []ptx.Operand
	if len(ops) > 0 && ops[0].Kind == ptx.OperandList {
		rets, ops = ops[0].Elems, ops[1:]
	}
	if len(ops) == 0 || ops[0].Kind != ptx.OperandName {
		b.invalid("call needs a function")
	}
	target := &ops[0]
	ops = ops[1:]
	if len(ops) > 0 && ops[0].Kind == ptx.OperandList {
		args, ops = ops[0].Elems, ops[1:]
	}
	c := &Call{Target: NoReg}
	var signature *ptx.Function
	if r, t, ok := b.declared(target); ok {
		b.fits(target, t, U64)
		c.Target = r
		signature = b.indirect(c, ops)
	} else {
		signature = b.direct(c, target)
	}
	b.guarded(func() {
		c.Args = b.passed(args, signature.Params)
		c.Rets = b.places(rets, signature.Returns)
		b.asSupplied(c, target.Name)
		b.end(Term{Kind: TermCall, Call: c, Targets: []int{following}})
		b.received(rets, c.Rets)
	})
}

// direct resolves a function by name.
func (b *body) direct(c *Call, x *ptx.Operand) *ptx.Function {
	s := b.symbol(x.Name)
	if s == nil || s.fn == nil {
		b.invalid("%s is not a declared function", x.Name)
	}
	for _, d := range s.fn.tree.Directives {
		c.NoReturn = c.NoReturn || d.Name == "noreturn"
	}
	switch {
	case s.fn.tree.Body != nil:
		if s.kern != nil {
			b.invalid("%s is a kernel, which cannot be called", x.Name)
		}
		c.Func = s.fn.out
		b.s.fn.calls = append(b.s.fn.calls, s)
	case builtins[x.Name] != BuiltinNone:
		c.Builtin = builtins[x.Name]
		c.NoReturn = c.NoReturn || c.Builtin == BuiltinAssertFail
	default:
		b.undefined(x.Name)
	}
	return s.fn.tree
}

// supplied are the sizes, in bytes, of what the driver's functions take and
// return.
var supplied = [...]struct{ args, rets []uint64 }{
	BuiltinVprintf:        {[]uint64{8, 8}, []uint64{4}},
	BuiltinAssertFail:     {[]uint64{8, 8, 4, 8, 8}, nil},
	BuiltinMalloc:         {[]uint64{8}, []uint64{8}},
	BuiltinAlignedMalloc:  {[]uint64{8, 8}, []uint64{8}},
	BuiltinFree:           {[]uint64{8}, nil},
	BuiltinSetConditional: {[]uint64{8, 4}, nil},
}

// asSupplied refuses a call of a function of the driver's that the module has
// declared as something else. What it returns may be left alone.
func (b *body) asSupplied(c *Call, name string) {
	if c.Builtin == BuiltinNone {
		return
	}
	want := &supplied[c.Builtin]
	if !haveSizes(c.Args, want.args) || len(c.Rets) > 0 && !haveSizes(c.Rets, want.rets) {
		b.invalid("%s is the driver's, and takes parameters of %v bytes and returns %v", name, want.args, want.rets)
	}
}

func haveSizes(vars []*Var, sizes []uint64) bool {
	return slices.EqualFunc(vars, sizes, func(v *Var, size uint64) bool { return v.Size == size })
}

// undefined refuses a call of a function without a body.
func (b *body) undefined(name string) {
	e := UnsupportedError{
		Reason:  "it calls " + name + ", which this module declares but does not define",
		Section: sectionControl,
		Hint:    "modules are not linked by themselves: link them with cudago.Linker, or put the function's source into the same program",
	}
	switch {
	case strings.HasPrefix(name, "__nv_"):
		e.Hint = "link libdevice into the PTX (NVRTC, Numba and Triton do)"
	case strings.HasPrefix(name, "cudaCG"):
		e.Reason = "it calls " + name + ", of the device runtime, which is not linked"
		e.Hint = "cooperative_groups.h of CUDA 11 and later has grid.sync without it"
	case strings.HasPrefix(name, "cuda"):
		e.Reason = "it calls " + name + ", of the device runtime: kernels cannot launch kernels here"
		e.Hint = "launch from the host"
	}
	b.refuseWith(e)
}

// indirect resolves the targets or prototype of a call through a register.
func (b *body) indirect(c *Call, ops []ptx.Operand) *ptx.Function {
	if len(ops) != 1 || ops[0].Kind != ptx.OperandName {
		b.invalid("an indirect call needs a .callprototype or .calltargets label")
	}
	n, _ := b.find(ops[0].Name)
	if n == nil || n.targets == nil || n.targets.Kind == ptx.BranchTargets {
		b.invalid("%s is not a .callprototype or .calltargets label", ops[0].Name)
	}
	if n.targets.Kind == ptx.CallPrototype {
		for _, d := range n.targets.Prototype.Directives {
			c.NoReturn = c.NoReturn || d.Name == "noreturn"
		}
		return n.targets.Prototype
	}
	if n.callees == nil { // calls that name one list share what is made of it
		b.calledFrom(n)
	}
	c.Callees = n.callees
	return n.signature
}

// calledFrom finds the functions of a .calltargets list.
func (b *body) calledFrom(n *local) {
	for _, name := range n.targets.Names {
		s := b.symbol(name)
		if s == nil || s.fn == nil || s.kern != nil {
			b.invalid("%s is not a declared function", name)
		}
		if s.fn.tree.Body == nil {
			b.undefined(name)
		}
		n.callees = append(n.callees, s.fn.out)
		b.s.fn.calls = append(b.s.fn.calls, s)
		n.signature = s.fn.tree
	}
}

// passed returns the variables that carry the arguments. A register or
// constant is stored to one made for the call.
func (b *body) passed(args []ptx.Operand, params []*ptx.Variable) []*Var {
	b.sameCount("arguments", len(args), params)
	vars := make([]*Var, len(args))
	for i := range args {
		x := &args[i]
		if v := b.callVariable(x); v != nil {
			if i < len(params) && params[i].Bytes() != 0 && params[i].Bytes() != v.Size {
				b.invalid("%s has %d bytes, parameter %d of the function %d", v.Name, v.Size, i+1, params[i].Bytes())
			}
			vars[i] = v
			continue
		}
		if i >= len(params) {
			b.invalid("argument %d has no parameter", i+1)
		}
		t := elementType(params[i])
		v := b.temporary(params[i])
		vars[i] = v
		in := Instr{Op: OpSt, Type: memoryType(t), Space: SpaceLocal, Src: b.regs(b.address(v))}
		if t == Pred {
			b.movePredicate(in, OpSt, b.predSource(x))
			continue
		}
		values := []Reg{NoReg}
		if n := params[i].Vector; n > 1 {
			values = b.elements(x, int(n), t, b.stored)
		} else {
			values[0] = b.stored(lowHalf(x, t), t)
		}
		b.wholeWords(&in.Type, &values)
		in.Src = append(in.Src[:1:1], values...)
		b.emitPlain(in)
	}
	return vars
}

// lowHalf is the operand, or, as ptxas has it, the low half of a double that is
// written as the argument for 32 bits.
func lowHalf(x *ptx.Operand, t Type) *ptx.Operand {
	if x.Kind != ptx.OperandImmediate || x.Value.Kind != ptx.LiteralF64 || t != B32 {
		return x
	}
	low := *x
	low.Value = ptx.Literal{Bits: x.Value.Bits & (1<<32 - 1)}
	return &low
}

// places returns the variables that the results arrive in.
func (b *body) places(rets []ptx.Operand, returns []*ptx.Variable) []*Var {
	b.sameCount("results", len(rets), returns)
	vars := make([]*Var, len(rets))
	for i := range rets {
		v := b.callVariable(&rets[i])
		if v == nil && i < len(returns) {
			v = b.temporary(returns[i])
		}
		if v == nil {
			b.invalid("result %d is returned by nobody", i+1)
		}
		vars[i] = v
	}
	return vars
}

// received loads results that belong into registers.
func (b *body) received(rets []ptx.Operand, vars []*Var) {
	for i := range rets {
		if rets[i].Kind == ptx.OperandSink || b.callVariable(&rets[i]) != nil {
			continue
		}
		t := vars[i].Type
		in := Instr{Op: OpLd, Type: memoryType(t), Space: SpaceLocal, Src: b.regs(b.address(vars[i]))}
		if t == Pred {
			b.movePredicate(in, OpLd, b.dest(&rets[i], Pred))
			continue
		}
		if n, _ := b.find(rets[i].Name); n != nil && n.vector > 1 {
			in.Dst = b.elements(&rets[i], int(n.vector), t, b.loaded)
		} else {
			in.Dst = b.regs(b.loaded(&rets[i], t))
		}
		b.wholeWords(&in.Type, &in.Dst)
		b.emitPlain(in)
	}
}

func (b *body) sameCount(what string, n int, params []*ptx.Variable) {
	// The last parameter of a variadic function is an array without a size.
	if n == len(params) || len(params) > 0 && n >= len(params)-1 && params[len(params)-1].Bytes() == 0 {
		return
	}
	b.invalid("call has %d %s, the function %d", n, what, len(params))
}

// callVariable returns the call-scope .param that an operand names, or nil.
func (b *body) callVariable(x *ptx.Operand) *Var {
	if x.Kind != ptx.OperandName {
		return nil
	}
	n, _ := b.find(x.Name)
	if n == nil {
		return nil
	}
	return n.v
}

// temporary makes a local variable that carries one argument or result.
func (b *body) temporary(p *ptx.Variable) *Var {
	v := b.l.parameters([]*ptx.Variable{p})[0]
	b.f.Vars = append(b.f.Vars, v)
	return v
}
