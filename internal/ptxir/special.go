// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"strconv"
	"strings"

	"github.com/cudago/cudago/internal/ptx"
)

// specialRegs are the special registers by name, without dimension, and the
// type that they have.
//
// PTX ISA, "Special Registers".
var specialRegs = map[string]struct {
	id  SpecialID
	typ Type
	// dims is set for those with .x, .y and .z.
	dims bool
}{
	"%tid": {SpecialTidX, U32, true}, "%ntid": {SpecialNtidX, U32, true},
	"%ctaid": {SpecialCtaidX, U32, true}, "%nctaid": {SpecialNctaidX, U32, true},
	"%laneid": {id: SpecialLaneid, typ: U32}, "%warpid": {id: SpecialWarpid, typ: U32}, "%nwarpid": {id: SpecialNwarpid, typ: U32},
	"%smid": {id: SpecialSmid, typ: U32}, "%nsmid": {id: SpecialNsmid, typ: U32}, "%gridid": {id: SpecialGridid, typ: U64},
	"%lanemask_eq": {id: SpecialLanemaskEq, typ: U32}, "%lanemask_le": {id: SpecialLanemaskLe, typ: U32},
	"%lanemask_lt": {id: SpecialLanemaskLt, typ: U32}, "%lanemask_ge": {id: SpecialLanemaskGe, typ: U32},
	"%lanemask_gt": {id: SpecialLanemaskGt, typ: U32},
	"%clock":       {id: SpecialClock, typ: U32}, "%clock_hi": {id: SpecialClockHi, typ: U32}, "%clock64": {id: SpecialClock64, typ: U64},
	"%globaltimer": {id: SpecialGlobaltimer, typ: U64}, "%globaltimer_lo": {id: SpecialGlobaltimerLo, typ: U32},
	"%globaltimer_hi":    {id: SpecialGlobaltimerHi, typ: U32},
	"%dynamic_smem_size": {id: SpecialDynamicSmemSize, typ: U32}, "%total_smem_size": {id: SpecialTotalSmemSize, typ: U32},
	"%aggr_smem_size": {id: SpecialAggrSmemSize, typ: U32},
	// The two places in the region are not told apart: on an H200 (driver 580) both
	// are its beginning.
	"%reserved_smem_offset_begin": {id: SpecialReservedSmemBegin, typ: U32}, "%reserved_smem_offset_end": {id: SpecialReservedSmemEnd, typ: U32},
	"%reserved_smem_offset_cap": {id: SpecialReservedSmemCap, typ: U32},
	"%reserved_smem_offset_0":   {id: SpecialReservedSmemBegin, typ: U32}, "%reserved_smem_offset_1": {id: SpecialReservedSmemBegin, typ: U32},
	// Without clusters each block is a cluster of its own.
	"%is_explicit_cluster": {id: SpecialIsExplicitCluster, typ: Pred},
	"%current_graph_exec":  {id: SpecialGraphExec, typ: U64},
	"%cluster_nctarank":    {id: SpecialClusterOne, typ: U32}, "%cluster_ctarank": {id: SpecialClusterZero, typ: U32},
	"%clusterid": {SpecialCtaidX, U32, true}, "%nclusterid": {SpecialNctaidX, U32, true},
}

// specialName resolves an operand to a special register and its type.
func (b *body) specialName(x *ptx.Operand) (SpecialID, Type) {
	if x.Name == "" || x.Name[0] != '%' {
		return SpecialNone, TypeNone
	}
	s, ok := specialRegs[x.Name]
	switch {
	case ok && s.dims:
		return b.dimension(x, s.id), s.typ
	case ok && x.Component == "":
		return s.id, s.typ
	case x.Name == "%cluster_nctaid" || x.Name == "%cluster_ctaid":
		if b.dimension(x, SpecialTidX); x.Name == "%cluster_nctaid" {
			return SpecialClusterOne, U32
		}
		return SpecialClusterZero, U32
	case strings.HasPrefix(x.Name, "%envreg"):
		n, err := strconv.Atoi(x.Name[len("%envreg"):])
		switch {
		case err != nil || n < 0 || n >= 32:
		case n == 1:
			return SpecialEnvreg1, U32
		case n == 2:
			return SpecialEnvreg2, U32
		default:
			return SpecialEnvreg, U32
		}
	case strings.HasPrefix(x.Name, "%pm"):
		b.refuse("read %clock64 instead", "%s: performance counters are not simulated", x.Name)
	}
	return SpecialNone, TypeNone
}

func (b *body) dimension(x *ptx.Operand, first SpecialID) SpecialID {
	switch x.Component {
	case "x", "r":
		return first
	case "y", "g":
		return first + 1
	case "z", "b":
		return first + 2
	case "w", "a":
		// The fourth element of the vector registers reads as zero.
		return SpecialEnvreg
	case "":
		b.invalid("%s is a vector: name a component", x.Name)
	}
	b.invalid("%s has no component .%s", x.Name, x.Component)
	return SpecialNone
}

// onceNarrow are the special registers that old PTX declares narrower than they
// are: mov takes them in 16 bits, and %gridid in 32 too.
var onceNarrow = map[string]bool{"%tid": true, "%ntid": true, "%ctaid": true, "%nctaid": true, "%gridid": true}

// checkWidth refuses a special register of type got where a value of type want
// is moved or converted: only cvt cuts it.
func (b *body) checkWidth(name string, got, want Type) {
	if got == Pred || want == Pred || got.Size() == want.Size() {
		return
	}
	if want.Size() > got.Size() || b.v.form.op != OpCvt && !onceNarrow[name] {
		b.invalid("%s is declared .%s, which does not fit the .%s of %s", name, got, want, b.ins.Mnemonic)
	}
}

// special returns a register with a special register's value as type want.
func (b *body) special(id SpecialID, typ, want Type) Reg {
	var r Reg
	switch id {
	case SpecialClock, SpecialClockHi, SpecialClock64, SpecialGlobaltimer, SpecialGlobaltimerLo, SpecialGlobaltimerHi:
		r = b.newReg(typ)
		b.emitPlain(Instr{Op: OpReadSpecial, Type: typ, Imm: int64(id), Dst: b.regs(r)})
	default:
		var ok bool
		if r, ok = b.specials[id]; !ok {
			r = b.newReg(typ)
			b.specials[id] = r
			b.f.Specials = append(b.f.Specials, Special{Reg: r, ID: id})
		}
	}
	if typ.Class() == want.Class() && !want.Float() {
		return r
	}
	if (typ == Pred) != (want == Pred) || want.Float() {
		b.invalid("a special register of type .%s does not fit a .%s", typ, want)
	}
	resized := b.newReg(want)
	b.emitPlain(Instr{Op: OpCvt, Type: unsigned(want), From: typ, Dst: b.regs(resized), Src: b.regs(r)})
	return resized
}

// unsigned is the unsigned integer type of t's register class.
func unsigned(t Type) Type {
	switch t.Class() {
	case Class16:
		return U16
	case Class32:
		return U32
	}
	return U64
}
