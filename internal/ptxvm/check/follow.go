// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// A read of unwritten local memory is not yet a defect: compilers copy structures
// together with the padding between their members, load before they know whether
// the value is needed, and return structures half filled. The same holds for
// registers. So the checks follow such a value through registers, and report it
// where something depends on it: a branch, an address, a store to global memory.
// The decoder finds the registers that the value can reach, and puts runFollowed
// around the instructions that read or write one. What a shuffle reads from a lane
// that does not take part is followed in the same way: see shuffle.go.

// none is the number of a register that is not followed.
const none = -1

// follow is the check around an instruction that works on followed registers, or
// on local memory.
type follow struct {
	ir       *ptxir.Instr // nil: the end of a block, which depends on src
	rule     followRule
	dst, src []int32  // numbers of the registers
	from     []uint32 // the sources' places in the frame
	guard    int32
	a        access // of loads and stores
	piece    bool   // a store that, with others, copies a structure
	lane.Place
}

// followRule computes the lanes in which the destination is unset, from the lanes
// in which each source is.
type followRule uint8

const (
	unsetIfAny followRule = iota
	unsetIfAll
	unsetEach     // moves of 128 bits
	unsetAsChosen // selp
	unsetAnd
	unsetOr
	unsetInserted // bfi
	unsetCompared // setp
	setAlways     // and depends on its sources
	setAnyway     // of one register twice: the result is 0
	followLoad
	followStore
)

var followRules = map[ptxir.Op]followRule{
	ptxir.OpPack: unsetIfAll, ptxir.OpPrmt: unsetIfAll, ptxir.OpLop3: unsetIfAll, ptxir.OpShf: unsetIfAll, ptxir.OpCvtPack: unsetIfAll,
	ptxir.OpSelp: unsetAsChosen, ptxir.OpAnd: unsetAnd, ptxir.OpOr: unsetOr, ptxir.OpBfi: unsetInserted, ptxir.OpSetp: unsetCompared,
	ptxir.OpLd: followLoad, ptxir.OpLdu: followLoad, ptxir.OpSt: followStore, ptxir.OpAtom: followStore,
	ptxir.OpCpAsync: setAlways, ptxir.OpMbarInit: setAlways, ptxir.OpMbarInval: setAlways, ptxir.OpMbarArrive: setAlways,
	ptxir.OpMbarTest: setAlways, ptxir.OpMbarExpectTx: setAlways, ptxir.OpMbarPending: setAlways, ptxir.OpCpAsyncMbarrier: setAlways,
	ptxir.OpBulkLoad: setAlways, ptxir.OpBulkStore: setAlways, ptxir.OpTensorLoad: setAlways, ptxir.OpTensorStore: setAlways,
}

// ruleOf is the rule of an instruction.
func ruleOf(ir *ptxir.Instr) followRule {
	switch {
	case ir.Op == ptxir.OpCvt && len(ir.Src) > 1:
		return unsetIfAll
	case (ir.Op == ptxir.OpXor || ir.Op == ptxir.OpSub) && !ir.Type.Float() && ir.Src[0] == ir.Src[1]:
		return setAnyway
	case ir.Type == ptxir.B128 && (ir.Op == ptxir.OpMov || ir.Op == ptxir.OpPack || ir.Op == ptxir.OpUnpack):
		return unsetEach
	}
	return followRules[ir.Op]
}

// inLocal reports whether an access may be one of local memory.
func inLocal(ir *ptxir.Instr) bool {
	switch ir.Op {
	case ptxir.OpLd, ptxir.OpLdu, ptxir.OpSt, ptxir.OpAtom:
		return ir.Space == ptxir.SpaceLocal || ir.Space == ptxir.SpaceGeneric
	}
	return false
}

// NumberFollowed finds the registers of a function that may hold something unset.
// Locals says that there is local memory. Registers that a convergent operation
// writes are left out, unless it is a shuffle.
func (d *Decoder) NumberFollowed(f *ptxir.Func, fn *Function, locals bool) {
	d.fn, d.numbers = fn, nil
	unwritten, shuffled := unwrittenRegisters(f), shuffledRegisters(f)
	if !locals && len(unwritten) == 0 && len(shuffled) == 0 {
		return
	}
	numbers := make([]int32, len(f.Regs))
	for r := range numbers {
		numbers[r] = none
	}
	leaveOut(f, numbers)
	d.pieces = map[*ptxir.Instr]bool{}
	for i := range f.Blocks {
		d.findPieces(f.Blocks[i].Instrs, slices.Contains(f.Blocks[i].Term.Targets, i))
	}
	for _, r := range unwritten {
		if numbers[r] == none {
			d.fn.unwritten = append(d.fn.unwritten, unwrittenRegister{r, d.fn.followed})
		}
		d.number(r, numbers)
	}
	for _, r := range shuffled {
		d.number(r, numbers)
	}
	for before := int32(-1); before != d.fn.followed; {
		before = d.fn.followed
		for i := range f.Blocks {
			for j := range f.Blocks[i].Instrs {
				d.spread(&f.Blocks[i].Instrs[j], numbers)
			}
		}
	}
	for r := range numbers {
		numbers[r] = max(numbers[r], none)
	}
	d.numbers = numbers
}

// leaveOut gives the registers that convergent operations write, except for the
// values of shuffles, a number that is no number.
func leaveOut(f *ptxir.Func, numbers []int32) {
	const never = none - 1
	for i := range f.Blocks {
		in := f.Blocks[i].Term.Instr
		if in == nil {
			continue
		}
		for j, r := range destinations(in) {
			if r != ptxir.NoReg && !(in.Op == ptxir.OpShfl && j == 0) {
				numbers[r] = never
			}
		}
	}
}

// findPieces finds the stores of a block that copy a structure. Either there are
// two or more around one address, which store what was loaded at the same distances
// around another; or there is one, in a loop that copies byte by byte.
func (d *Decoder) findPieces(code []ptxir.Instr, loop bool) {
	type spot struct {
		base ptxir.Reg
		off  int64
	}
	type copied struct {
		from, to ptxir.Reg
		distance int64
	}
	places := map[ptxir.Reg]spot{}
	at := func(r ptxir.Reg, off int64) spot {
		if p, ok := places[r]; ok {
			return spot{p.base, p.off + off}
		}
		return spot{r, off}
	}
	loads := map[ptxir.Reg]spot{}
	first := map[copied]*ptxir.Instr{}
	for i := range code {
		in := &code[i]
		switch rule := ruleOf(in); {
		case in.Op == ptxir.OpAdd && in.Type.Size() == 8:
			if c := d.lane.Known[in.Src[1]]; c != nil && c.Var == nil && c.Func == nil {
				places[in.Dst[0]] = at(in.Src[0], int64(c.Bits))
			}
		case rule == followLoad && in.Dst[0] != ptxir.NoReg:
			loads[in.Dst[0]] = at(in.Src[0], in.Imm)
		case in.Op == ptxir.OpSt:
			from, ok := loads[in.Src[1]]
			if !ok {
				continue
			}
			to := at(in.Src[0], in.Imm)
			key := copied{from.base, to.base, to.off - from.off}
			if other := first[key]; other != nil {
				d.pieces[other], d.pieces[in] = true, true
			}
			first[key] = in
			if loop && in.Type.Size() == 1 {
				d.pieces[in] = true
			}
		}
	}
}

// spread numbers the destinations of an instruction that may leave one unset.
func (d *Decoder) spread(ir *ptxir.Instr, numbers []int32) {
	switch ruleOf(ir) {
	case followLoad:
		if !inLocal(ir) {
			return
		}
	case followStore, setAlways, setAnyway:
		return
	default:
		if !anyFollowed(sources(ir), numbers) {
			return
		}
	}
	for _, r := range destinations(ir) {
		if r != ptxir.NoReg {
			d.number(r, numbers)
		}
	}
}

// number gives a register the next number, unless it has one or can have none.
func (d *Decoder) number(r ptxir.Reg, numbers []int32) {
	if numbers[r] == none {
		numbers[r] = d.fn.followed
		d.fn.followed++
	}
}

func anyFollowed(regs []ptxir.Reg, numbers []int32) bool {
	for _, r := range regs {
		if r != ptxir.NoReg && numbers[r] >= 0 {
			return true
		}
	}
	return false
}

// halves lists registers, with both halves of each one of 128 bits. Elements of a
// vector that are left out keep their place.
func halves(ir *ptxir.Instr, list []ptxir.Reg) []ptxir.Reg {
	if ir.Type == ptxir.B128 && len(list) == 1 && list[0] != ptxir.NoReg {
		return []ptxir.Reg{list[0], list[0] + 1}
	}
	return list
}

func destinations(ir *ptxir.Instr) []ptxir.Reg { return halves(ir, ir.Dst) }

func sources(ir *ptxir.Instr) []ptxir.Reg {
	if ruleOf(ir) == followLoad { // an address
		return ir.Src
	}
	return halves(ir, ir.Src)
}

// Follow wraps an instruction that works on followed registers or local memory.
func (d *Decoder) Follow(in *lane.Inst) {
	ir := in.IR
	if d.numbers == nil || ir.Op.Convergent() && ir.Op != ptxir.OpShfl {
		return
	}
	guarded := ir.Guard != ptxir.NoReg && d.numbers[ir.Guard] >= 0
	if !guarded && !inLocal(ir) && !anyFollowed(sources(ir), d.numbers) && !anyFollowed(destinations(ir), d.numbers) {
		return
	}
	x := follow{ir: ir, rule: ruleOf(ir), guard: none, Place: lane.Place{Pos: ir.Pos, Text: lane.Text(ir)}}
	if guarded {
		x.guard = d.numbers[ir.Guard]
	}
	x.dst, _ = d.numbersOf(destinations(ir))
	x.src, x.from = d.numbersOf(sources(ir))
	if x.rule == followLoad || x.rule == followStore {
		x.a = d.plainAccess(ir)
		x.a.site, x.a.ir, x.piece = uint32(len(d.code.accesses)), ir, d.pieces[ir]
		d.code.accesses = append(d.code.accesses, x.a)
	}
	inner := *in
	in.Parts = []lane.Inst{inner}
	in.Site = uint32(len(d.code.follows))
	in.Fn = runFollowed
	if ir.Op == ptxir.OpShfl {
		in.Fn = runShuffled
	}
	d.code.follows = append(d.code.follows, x)
}

func (d *Decoder) numbersOf(list []ptxir.Reg) (numbers []int32, places []uint32) {
	for _, r := range list {
		n, place := int32(none), register.None
		if r != ptxir.NoReg {
			n, place = d.numbers[r], d.lane.Offsets[r]
		}
		numbers, places = append(numbers, n), append(places, place)
	}
	return numbers, places
}

// FollowEnd returns a check to put before the end of a block, if the end depends
// on a followed register.
func (d *Decoder) FollowEnd(t *ptxir.Term) (in lane.Inst, ok bool) {
	if d.numbers == nil {
		return lane.Inst{}, false
	}
	r := ptxir.NoReg
	switch t.Kind {
	case ptxir.TermBranch:
		r = t.Pred
	case ptxir.TermSwitch:
		r = t.Index
	case ptxir.TermCall:
		r = t.Call.Target
	}
	if r == ptxir.NoReg || int(r) >= len(d.numbers) || d.numbers[r] < 0 {
		return lane.Inst{}, false
	}
	d.code.follows = append(d.code.follows, follow{src: []int32{d.numbers[r]}, guard: none, Place: lane.Place{Pos: t.Pos, Text: t.Text}})
	return lane.Inst{Fn: runFollowedEnd, Site: uint32(len(d.code.follows) - 1)}, true
}
