// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"fmt"
	"strings"
)

// Format returns the lowered module as text, for tests and for reading.
func (m *Module) Format() string {
	var w strings.Builder
	for _, v := range m.Vars {
		fmt.Fprintf(&w, "var %s\n", v)
	}
	for _, f := range m.Funcs {
		fmt.Fprintf(&w, "func %s\n%s", f.Name, f.Format())
	}
	for _, k := range m.Kernels {
		fmt.Fprintf(&w, "kernel %s args=%d", k.Name, k.ArgBytes)
		for _, limit := range []struct {
			name string
			n    [3]uint32
		}{{"maxntid", k.MaxThreads}, {"reqntid", k.ReqThreads}} {
			if limit.n != [3]uint32{} {
				fmt.Fprintf(&w, " %s=%d,%d,%d", limit.name, limit.n[0], limit.n[1], limit.n[2])
			}
		}
		fmt.Fprintf(&w, "\n%s", k.Func.Format())
	}
	return w.String()
}

// String returns the variable with its space, size and alignment.
func (v *Var) String() string {
	s := fmt.Sprintf("%s %s %s size=%d align=%d", v.Space, v.Type, v.Name, v.Size, v.Align)
	if v.Space == SpaceParam {
		s += fmt.Sprintf(" offset=%d", v.Offset)
	}
	if v.Extern {
		s += " extern"
	}
	if len(v.Init) > 0 {
		s += fmt.Sprintf(" init=%x", v.Init)
	}
	for _, r := range v.Relocs {
		s += " reloc=" + r.String()
	}
	return s
}

// String returns where the relocation stores which address.
func (r *Reloc) String() string {
	name := ""
	switch {
	case r.Func != nil:
		name = r.Func.Name
	case r.Var != nil:
		name = r.Var.Name
	}
	s := fmt.Sprintf("%d:%d:%s%+d", r.Offset, r.Size, name, r.Addend)
	if r.Generic {
		s += ":generic"
	}
	if r.Shift != 0 {
		s += fmt.Sprintf(">>%d", r.Shift)
	}
	return s
}

// Format returns the function's variables, constants and blocks.
func (f *Func) Format() string {
	var w strings.Builder
	if f.Err != nil {
		fmt.Fprintf(&w, "  error %s\n", f.Err)
		return w.String()
	}
	for _, group := range []struct {
		name string
		vars []*Var
	}{{"param", f.Params}, {"ret", f.Rets}, {"var", f.Vars}} {
		for _, v := range group.vars {
			fmt.Fprintf(&w, "  %s %s\n", group.name, v)
		}
	}
	for _, c := range f.Consts {
		fmt.Fprintf(&w, "  %s = %s\n", f.reg(c.Reg), c.String())
	}
	for _, s := range f.Specials {
		fmt.Fprintf(&w, "  %s = special %d\n", f.reg(s.Reg), s.ID)
	}
	for i := range f.Blocks {
		b := &f.Blocks[i]
		fmt.Fprintf(&w, "b%d: count=%d\n", i, b.Count)
		for k := range b.Instrs {
			fmt.Fprintf(&w, "  %s\n", f.instr(&b.Instrs[k]))
		}
		fmt.Fprintf(&w, "  %s\n", f.term(&b.Term))
	}
	return w.String()
}

// String returns the value: bits, or a name and what is added to its address.
func (c Const) String() string {
	name := ""
	switch {
	case c.Var != nil:
		name = "&" + c.Var.Name
	case c.Func != nil:
		name = "&" + c.Func.Name
	default:
		return fmt.Sprintf("%#x", c.Bits)
	}
	if c.Generic {
		name = "generic " + name
	}
	if c.Bits != 0 {
		name += fmt.Sprintf("%+d", int64(c.Bits))
	}
	return name
}

// reg returns a register's name: its class and number.
func (f *Func) reg(r Reg) string {
	if r == NoReg {
		return "_"
	}
	return [...]string{"p", "h", "r", "d"}[f.Regs[r]] + fmt.Sprint(uint32(r))
}

func (f *Func) regList(list []Reg) string {
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = f.reg(r)
	}
	return strings.Join(names, ", ")
}

var roundNames = [...]string{"", "rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna"}

var cmpNames = [...]string{"", "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
	"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}

var boolNames = [...]string{"", "and", "or", "xor"}

var atomNames = [...]string{"", "add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"}

var modeNames = [...]string{"", "lo", "hi", "wide", "l", "r", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16",
	"finite", "infinite", "number", "notanumber", "normal", "subnormal", "sync", "arrive", "red.popc", "red.and", "red.or",
	"up", "down", "bfly", "idx", "all", "any", "uni", "ballot"}

var modNames = [...]string{"ftz", "sat", "satfinite", "approx", "full", "NaN", "xorsign.abs", "relu", "clamp", "shiftamt",
	"to", "volatile", "acquire", "release", "trans", "ignoresrc", "noinc", "noComplete", "drop", "expect_tx", "parity",
	"try", "oob", "aligned", "unit"}

func (f *Func) instr(in *Instr) string {
	var w strings.Builder
	if in.Guard != NoReg {
		w.WriteByte('@')
		if in.GuardNot {
			w.WriteByte('!')
		}
		w.WriteString(f.reg(in.Guard) + " ")
	}
	w.WriteString(in.Op.String())
	parts := []string{modeNames[in.Mode], cmpNames[in.Cmp], boolNames[in.Bool], atomNames[in.Atom], roundNames[in.Round]}
	for i, name := range modNames {
		if in.Mod>>i&1 != 0 {
			parts = append(parts, name)
		}
	}
	if in.Space != SpaceGeneric {
		parts = append(parts, in.Space.String())
	}
	if in.Type != TypeNone {
		parts = append(parts, in.Type.String())
	}
	if in.From != TypeNone {
		parts = append(parts, in.From.String())
	}
	for _, p := range parts {
		if p != "" {
			w.WriteString("." + p)
		}
	}
	fmt.Fprintf(&w, " (%s) (%s)", f.regList(in.Dst), f.regList(in.Src))
	if in.Imm != 0 {
		fmt.Fprintf(&w, " %d", in.Imm)
	}
	if m := in.Mma; m != nil {
		fmt.Fprintf(&w, " m%dn%dk%d.%s.%s.%s.%s", m.M, m.N, m.K, m.D, m.A, m.B, m.C)
	}
	return w.String()
}

func (f *Func) term(t *Term) string {
	targets := make([]string, len(t.Targets))
	for i, n := range t.Targets {
		targets[i] = fmt.Sprintf("b%d", n)
	}
	to := strings.Join(targets, ", ")
	switch t.Kind {
	case TermJump:
		return "jump " + to
	case TermBranch:
		not := ""
		if t.Not {
			not = "!"
		}
		return "branch " + not + f.reg(t.Pred) + " " + to
	case TermSwitch:
		return "switch " + f.reg(t.Index) + " " + to
	case TermRet:
		return "ret"
	case TermExit:
		return "exit"
	case TermSync:
		return "sync " + f.instr(t.Instr) + " -> " + to
	}
	return "call " + f.callText(t.Call) + " -> " + to
}

func (f *Func) callText(c *Call) string {
	name := fmt.Sprintf("builtin %d", c.Builtin)
	switch {
	case c.Func != nil:
		name = c.Func.Name
	case c.Target != NoReg:
		name = "*" + f.reg(c.Target)
		for _, callee := range c.Callees {
			name += " " + callee.Name
		}
	}
	list := func(vars []*Var) string {
		names := make([]string, len(vars))
		for i, v := range vars {
			names[i] = v.Name
		}
		return "(" + strings.Join(names, ", ") + ")"
	}
	s := list(c.Rets) + " = " + name + list(c.Args)
	if c.NoReturn {
		s += " noreturn"
	}
	return s
}
