// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cudago/cudago/internal/ptxir"
)

// combine32 and combine64 compute an atomic operation's new value from the old
// one and the operands.
type (
	combine32 func(old, b, c uint32) uint32
	combine64 func(old, b, c uint64) uint64
)

// atom chooses atom and red. PTX ISA, "atom". Shared memory belongs to one
// goroutine and needs no host atomics; all else does, generic included.
func (s *selection) atom() error {
	ir, in := s.ir, s.in
	n := 2
	if ir.Atom == ptxir.AtomCas {
		n = 3
	}
	if len(ir.Src) != n {
		return fmt.Errorf("%d operands, want %d", len(ir.Src), n)
	}
	addr := s.class(ir.Src[0])
	if addr != class32 && addr != class64 {
		return fmt.Errorf("the address is neither 32 nor 64 bits")
	}
	in.mode = ptxir.Mode(addr)
	class := classOf(ir.Type.Class())
	places, classes := []*uint32{&in.a, &in.b, &in.c}, []operandClass{addr, class, class}
	for i, r := range ir.Src {
		if err := s.take(places[i], r, classes[i]); err != nil {
			return err
		}
	}
	if len(ir.Dst) > 0 && ir.Dst[0] != ptxir.NoReg {
		if err := s.take(&in.d, ir.Dst[0], class); err != nil {
			return err
		}
	}
	in.site = s.d.newSite()
	return s.atomFunction()
}

func (s *selection) atomFunction() error {
	ir, in := s.ir, s.in
	shared := ir.Space == ptxir.SpaceShared
	switch ir.Type.Size() {
	case 8:
		in.combine64 = atomCombine64(ir)
		in.fn = atom64
		if in.combine64 == nil {
			return errNoExecutor
		}
	case 4:
		in.combine32 = atomCombine32(ir)
		in.fn = atom32
		switch {
		case in.combine32 == nil:
			return errNoExecutor
		case shared:
			in.fn = atomShared32
		case ir.Atom == ptxir.AtomAdd && !ir.Type.Float():
			in.fn = atomAdd32
		}
	case 2:
		in.combine32 = atomCombine16(ir)
		in.fn = atom16
		if in.combine32 == nil {
			return errNoExecutor
		}
	default:
		return errNoExecutor
	}
	return nil
}

// integerCombine are the operations that do not depend on sign.
func integerCombine[T uint32 | uint64](op ptxir.AtomOp) func(old, b, c T) T {
	switch op {
	case ptxir.AtomAdd:
		return func(old, b, _ T) T { return old + b }
	case ptxir.AtomAnd:
		return func(old, b, _ T) T { return old & b }
	case ptxir.AtomOr:
		return func(old, b, _ T) T { return old | b }
	case ptxir.AtomXor:
		return func(old, b, _ T) T { return old ^ b }
	case ptxir.AtomExch:
		return func(_, b, _ T) T { return b }
	case ptxir.AtomCas:
		return func(old, b, c T) T {
			if old == b {
				return c
			}
			return old
		}
	case ptxir.AtomInc:
		return func(old, b, _ T) T {
			if old >= b {
				return 0
			}
			return old + 1
		}
	case ptxir.AtomDec:
		return func(old, b, _ T) T {
			if old == 0 || old > b {
				return b
			}
			return old - 1
		}
	case ptxir.AtomMin:
		return func(old, b, _ T) T { return min(old, b) }
	case ptxir.AtomMax:
		return func(old, b, _ T) T { return max(old, b) }
	}
	return nil
}

func atomCombine32(ir *ptxir.Instr) combine32 {
	extreme := ir.Atom == ptxir.AtomMin || ir.Atom == ptxir.AtomMax
	switch {
	case ir.Type == ptxir.F32 && ir.Atom == ptxir.AtomAdd:
		// atom.add.f32 flushes subnormals in global memory on hardware, but not
		// in shared memory; here it never does.
		return func(old, b, _ uint32) uint32 {
			r := math.Float32frombits(old) + math.Float32frombits(b)
			if r != r {
				r = nan32
			}
			return math.Float32bits(r)
		}
	case ir.Type == ptxir.F16x2 && ir.Atom == ptxir.AtomAdd:
		return func(old, b, _ uint32) uint32 { return halfPair(ir, opAdd, old, b, 0) }
	case ir.Type == ptxir.BF16x2 && ir.Atom == ptxir.AtomAdd:
		return func(old, b, _ uint32) uint32 { return bfloatPair(ir, opAdd, old, b, 0) }
	case ir.Type.Float() && ir.Atom != ptxir.AtomExch && ir.Atom != ptxir.AtomCas:
		return nil
	case ir.Type == ptxir.S32 && extreme:
		if ir.Atom == ptxir.AtomMin {
			return func(old, b, _ uint32) uint32 { return uint32(min(int32(old), int32(b))) }
		}
		return func(old, b, _ uint32) uint32 { return uint32(max(int32(old), int32(b))) }
	}
	return integerCombine[uint32](ir.Atom)
}

func atomCombine64(ir *ptxir.Instr) combine64 {
	switch {
	case ir.Type == ptxir.F64 && ir.Atom == ptxir.AtomAdd:
		return func(old, b, _ uint64) uint64 {
			return math.Float64bits(math.Float64frombits(old) + math.Float64frombits(b))
		}
	case ir.Type == ptxir.S64 && ir.Atom == ptxir.AtomMin:
		return func(old, b, _ uint64) uint64 { return uint64(min(int64(old), int64(b))) }
	case ir.Type == ptxir.S64 && ir.Atom == ptxir.AtomMax:
		return func(old, b, _ uint64) uint64 { return uint64(max(int64(old), int64(b))) }
	case ir.Type.Float() && ir.Atom != ptxir.AtomExch && ir.Atom != ptxir.AtomCas:
		return nil
	}
	return integerCombine[uint64](ir.Atom)
}

func atomCombine16(ir *ptxir.Instr) combine32 {
	switch {
	case ir.Atom == ptxir.AtomAdd && ir.Type == ptxir.F16:
		return func(old, b, _ uint32) uint32 { return uint32(halfLane(ir, opAdd, uint16(old), uint16(b), 0)) }
	case ir.Atom == ptxir.AtomAdd && ir.Type == ptxir.BF16:
		return func(old, b, _ uint32) uint32 { return uint32(bfloatLane(ir, opAdd, uint16(old), uint16(b), 0)) }
	case ir.Atom == ptxir.AtomCas, ir.Atom == ptxir.AtomExch:
		return integerCombine[uint32](ir.Atom)
	}
	return nil
}

// atomAddress is a lane's address.
func (w *warp) atomAddress(in *inst, l int) uint64 {
	if operandClass(in.mode) == class64 {
		return w.u64(in.a)[l] + in.imm
	}
	return uint64(w.u32(in.a)[l]) + in.imm
}

//go:norace
func atomAdd32(w *warp, in *inst, m uint32) {
	s, b := w.site(in.site), w.u32(in.b)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint32)(w.pointer(in, s, w.atomAddress(in, l), l, 4))
		v := b[l]
		old := atomic.AddUint32(p, v) - v
		if in.d != noOperand {
			w.u32(in.d)[l] = old
		}
	}
}

//go:norace
func atomShared32(w *warp, in *inst, m uint32) {
	s, b := w.site(in.site), w.u32(in.b)
	c := b
	if in.c != noOperand {
		c = w.u32(in.c)
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint32)(w.pointer(in, s, w.atomAddress(in, l), l, 4))
		old := *p
		*p = in.combine32(old, b[l], c[l])
		if in.d != noOperand {
			w.u32(in.d)[l] = old
		}
	}
}

//go:norace
func atom32(w *warp, in *inst, m uint32) {
	s, b := w.site(in.site), w.u32(in.b)
	c := b
	if in.c != noOperand {
		c = w.u32(in.c)
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint32)(w.pointer(in, s, w.atomAddress(in, l), l, 4))
		old := atomic.LoadUint32(p)
		for !atomic.CompareAndSwapUint32(p, old, in.combine32(old, b[l], c[l])) {
			old = atomic.LoadUint32(p)
		}
		if in.d != noOperand {
			w.u32(in.d)[l] = old
		}
	}
}

//go:norace
func atom64(w *warp, in *inst, m uint32) {
	s, b := w.site(in.site), w.u64(in.b)
	c := b
	if in.c != noOperand {
		c = w.u64(in.c)
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint64)(w.pointer(in, s, w.atomAddress(in, l), l, 8))
		old := atomic.LoadUint64(p)
		for !atomic.CompareAndSwapUint64(p, old, in.combine64(old, b[l], c[l])) {
			old = atomic.LoadUint64(p)
		}
		if in.d != noOperand {
			w.u64(in.d)[l] = old
		}
	}
}

// atom16 swaps the aligned 32-bit word around the 16 bits: hosts have no
// smaller atomics. Allocations are whole words, so the other half is ours; host
// ranges are whole words in every page.
//
//go:norace
func atom16(w *warp, in *inst, m uint32) {
	s, b := w.site(in.site), w.u32(in.b)
	c := b
	if in.c != noOperand {
		c = w.u32(in.c)
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		half := w.pointer(in, s, w.atomAddress(in, l), l, 2)
		shift := uint(uintptr(half)&2) * 8
		p := (*uint32)(unsafe.Add(half, -int(uintptr(half)&2)))
		var old uint32
		for {
			word := atomic.LoadUint32(p)
			old = word >> shift & 0xffff
			next := in.combine32(old, b[l], c[l]) & 0xffff
			if atomic.CompareAndSwapUint32(p, word, word&^(0xffff<<shift)|next<<shift) {
				break
			}
		}
		if in.d != noOperand {
			w.u32(in.d)[l] = old
		}
	}
}
