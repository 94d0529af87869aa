// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package numeric

import (
	"math"

	"github.com/cudago/cudago/internal/ptxir"
)

// Combine32 computes the new value of 32 bits of memory from the old one and an
// atomic operation's operands. Only cas uses c. It has no effects: where
// another thread has written in between, it runs again.
type Combine32 func(old, b, c uint32) uint32

// Combine64 is [Combine32] for 64 bits.
type Combine64 func(old, b, c uint64) uint64

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

// halfOps are the operations on halves.
var halfOps = map[ptxir.AtomOp]HalfOp{ptxir.AtomAdd: OpAdd, ptxir.AtomMin: OpMin, ptxir.AtomMax: OpMax}

// Atomic32 returns an operation on 32 bits, or nil if there is none: atom,
// red and redux.sync.
func Atomic32(ir *ptxir.Instr) Combine32 {
	extreme := ir.Atom == ptxir.AtomMin || ir.Atom == ptxir.AtomMax
	op := halfOps[ir.Atom]
	switch {
	case ir.Type == ptxir.F32 && ir.Atom == ptxir.AtomAdd:
		return addFloats(ir.Space)
	case ir.Type == ptxir.F32 && ir.Op == ptxir.OpRedux && extreme:
		return reduxCombine(ir)
	case ir.Type == ptxir.F16x2 && op != nil:
		return func(old, b, _ uint32) uint32 { return HalfPair(ir, op, old, b, 0) }
	case ir.Type == ptxir.BF16x2 && op != nil:
		return func(old, b, _ uint32) uint32 { return BFloatPair(ir, op, old, b, 0) }
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

// addFloats adds f32. PTX ISA, "atom": in global memory subnormal numbers are
// flushed, in shared memory they are not. A generic address counts as global,
// where nearly all are.
func addFloats(space ptxir.Space) Combine32 {
	sum := func(x, y float32) float32 {
		if r := x + y; r == r {
			return r
		}
		return NaN32
	}
	if space == ptxir.SpaceShared {
		return func(old, b, _ uint32) uint32 {
			return math.Float32bits(sum(math.Float32frombits(old), math.Float32frombits(b)))
		}
	}
	return func(old, b, _ uint32) uint32 {
		return math.Float32bits(Ftz(sum(Ftz(math.Float32frombits(old)), Ftz(math.Float32frombits(b)))))
	}
}

// Atomic64 is [Atomic32] for 64 bits.
func Atomic64(ir *ptxir.Instr) Combine64 {
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

// Atomic16 is [Atomic32] for the low 16 of 32 bits.
func Atomic16(ir *ptxir.Instr) Combine32 {
	op := halfOps[ir.Atom]
	switch {
	case ir.Type == ptxir.F16 && op != nil:
		return func(old, b, _ uint32) uint32 { return uint32(HalfLane(ir, op, uint16(old), uint16(b), 0)) }
	case ir.Type == ptxir.BF16 && op != nil:
		return func(old, b, _ uint32) uint32 { return uint32(BFloatLane(ir, op, uint16(old), uint16(b), 0)) }
	case ir.Atom == ptxir.AtomCas, ir.Atom == ptxir.AtomExch:
		return integerCombine[uint32](ir.Atom)
	}
	return nil
}

// reduxCombine is redux.sync of f32: a NaN loses against a number, or with .NaN
// wins. PTX ISA, "redux.sync".
func reduxCombine(ir *ptxir.Instr) Combine32 {
	pick := Min32
	if ir.Atom == ptxir.AtomMax {
		pick = Max32
	}
	return func(old, b, _ uint32) uint32 {
		x, y := math.Float32frombits(old), math.Float32frombits(b)
		if ir.Mod&ptxir.ModNaN != 0 && (x != x || y != y) {
			return math.Float32bits(NaN32)
		}
		return math.Float32bits(pick(x, y))
	}
}
