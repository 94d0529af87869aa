// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"slices"

	"github.com/cudago/cudago/internal/ptx"
)

// bulkOperands returns the operands without the cache policy, which has no effect
// here; there must be n.
func (b *body) bulkOperands(n int) []ptx.Operand {
	b.cachePolicy(n)
	return b.ins.Operands[:n]
}

// bulkCopy lowers cp.async.bulk [shared], [global], bytes, [mbarrier] and
// cp.async.bulk [global], [shared], bytes.
//
// PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk".
func bulkCopy(b *body) {
	in := b.instr()
	in.Space = SpaceGlobal
	if in.Op == OpBulkLoad {
		ops := b.bulkOperands(4)
		in.Src = b.regs(b.wholeAddress(&ops[0], SpaceShared), b.wholeAddress(&ops[1], SpaceGlobal), b.source(&ops[2], U32), b.wholeAddress(&ops[3], SpaceShared))
	} else {
		ops := b.bulkOperands(3)
		in.Src = b.regs(b.wholeAddress(&ops[1], SpaceShared), b.wholeAddress(&ops[0], SpaceGlobal), b.source(&ops[2], U32))
	}
	b.emit(in)
}

// bulkPrefetch lowers cp.async.bulk.prefetch [global], bytes, which has no effect.
func bulkPrefetch(b *body) {
	ops := b.bulkOperands(2)
	b.wholeAddress(&ops[0], SpaceGlobal)
	b.source(&ops[1], U32)
	b.emit(Instr{Op: OpPrefetch})
}

// tensorCopy lowers cp.async.bulk.tensor [shared], [map, {coordinates}],
// [mbarrier] and cp.async.bulk.tensor [map, {coordinates}], [shared].
//
// PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk.tensor".
func tensorCopy(b *body) {
	in := b.instr()
	in.Space = SpaceGlobal
	if in.Op == OpTensorLoad {
		ops := b.bulkOperands(3)
		tensor, at := b.tensor(&ops[1])
		in.Src = b.regs(b.wholeAddress(&ops[0], SpaceShared), tensor, b.wholeAddress(&ops[2], SpaceShared))
		in.Src = append(in.Src, at...)
	} else {
		ops := b.bulkOperands(2)
		tensor, at := b.tensor(&ops[0])
		in.Src = append(b.regs(b.wholeAddress(&ops[1], SpaceShared), tensor), at...)
	}
	b.emit(in)
}

// tensorPrefetch lowers cp.async.bulk.prefetch.tensor [map, {coordinates}], which
// has no effect.
func tensorPrefetch(b *body) {
	b.tensor(&b.bulkOperands(1)[0])
	b.emit(Instr{Op: OpPrefetch})
}

// tensor splits [map, {coordinates}]. The map's address is generic.
func (b *body) tensor(x *ptx.Operand) (tensor Reg, at []Reg) {
	if x.Kind != ptx.OperandAddress || len(x.Elems) != 1 || x.Elems[0].Kind != ptx.OperandVector {
		b.invalid("%s: expected [tensor map, {coordinates}]", b.ins.Mnemonic)
	}
	plain, coordinates := *x, x.Elems[0].Elems
	plain.Elems = nil
	if rank := 1 + slices.IndexFunc([]string{"1d", "2d", "3d", "4d", "5d"}, b.v.has); len(coordinates) != rank {
		b.invalid("%s takes %d coordinates, got %d", b.ins.Mnemonic, rank, len(coordinates))
	}
	for i := range coordinates {
		at = append(at, b.source(&coordinates[i], S32))
	}
	return b.wholeAddress(&plain, SpaceGeneric), at
}
