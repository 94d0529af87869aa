// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/descriptor"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// Like asynchronous copies, bulk copies happen at once; those that load then tell
// their mbarrier. PTX ISA, "cp.async.bulk", "cp.async.bulk.tensor".

// bulkCopy: a is the shared address, b the global one or that of the tensor map, c
// the bytes of a copy without a map; more are an mbarrier, of loads, and the
// coordinates.
func (s *selection) bulkCopy() error {
	ir, in := s.ir, s.in
	least := map[ptxir.Op]int{ptxir.OpBulkLoad: 4, ptxir.OpBulkStore: 3, ptxir.OpTensorLoad: 4, ptxir.OpTensorStore: 3}[ir.Op]
	if len(ir.Src) < least || len(ir.Src) > 3+descriptor.MaxRank {
		return fmt.Errorf("%d operands, want %d or more", len(ir.Src), least)
	}
	in.Mode = ptxir.Mode(s.class(ir.Src[0]))
	if err := s.take(&in.A, ir.Src[0], register.Class(in.Mode)); err != nil {
		return err
	}
	if err := s.take(&in.B, ir.Src[1], register.Class64); err != nil {
		return err
	}
	rest := ir.Src[2:]
	if bulkIsPlain(ir.Op) {
		if err := s.take(&in.C, rest[0], register.Class32); err != nil {
			return err
		}
		rest = rest[1:]
	}
	for i, r := range rest {
		class := register.Class32
		if i == 0 && bulkLoads(ir.Op) {
			class = s.class(r)
			in.Members = uint32(class)
		}
		var place uint32
		if err := s.take(&place, r, class); err != nil {
			return err
		}
		in.More = append(in.More, place)
	}
	in.Fn = bulkCopy
	return nil
}

func bulkIsPlain(op ptxir.Op) bool { return op == ptxir.OpBulkLoad || op == ptxir.OpBulkStore }
func bulkLoads(op ptxir.Op) bool   { return op == ptxir.OpBulkLoad || op == ptxir.OpTensorLoad }

// A Bulk is one lane's bulk copy.
type Bulk struct {
	// Loads says that it goes to shared memory.
	Loads bool
	// Shared is where in the window of shared memory it begins, Bytes its size there.
	Shared, Bytes uint64
	fill          [8]byte // repeated where a load is beyond the bounds
	tensor        *descriptor.TensorMap
	global        uint64
	at            [descriptor.MaxRank]int32
}

// Pieces calls f for all bytes of the copy.
func (b *Bulk) Pieces(f func(descriptor.Piece)) {
	if b.tensor != nil {
		b.tensor.Pieces(b.Shared, b.at, f)
	} else if b.Bytes > 0 {
		f(descriptor.Piece{Shared: b.Shared, Global: b.global, Bytes: b.Bytes})
	}
}

// What shared memory must be aligned to. PTX ISA, "cp.async.bulk.tensor" and
// "cp.async.bulk".
const (
	alignTensor = 128
	alignBulk   = 16
)

// BulkOf reads the operands of a lane's bulk copy, and stops the kernel if they are
// wrong.
func (w *Warp) BulkOf(in *Inst, l int) Bulk {
	b := Bulk{Loads: bulkLoads(in.IR.Op)}
	global := w.U64(in.B)[l]
	if bulkIsPlain(in.IR.Op) {
		b.global, b.Bytes = global, uint64(w.U32(in.C)[l])
		w.align(in, global, l, alignBulk)
		if b.Bytes%alignBulk != 0 {
			w.Fault(&Stop{Kind: fault.Illegal, In: in, Lane: l, Detail: fmt.Sprintf("%d bytes are not a multiple of 16", b.Bytes)})
		}
		b.Shared = w.sharedStart(in, l, alignBulk, b.Bytes)
		return b
	}
	coordinates := in.More
	if b.Loads {
		coordinates = coordinates[1:]
	}
	m := w.tensorMap(in, l, global)
	if m.Rank != len(coordinates) {
		w.Fault(&Stop{Kind: fault.Illegal, In: in, Lane: l, Detail: fmt.Sprintf("the tensor map has %d dimensions, the instruction %d", m.Rank, len(coordinates))})
	}
	for i, place := range coordinates {
		b.at[i] = int32(w.U32(place)[l])
	}
	// Seen on an H200; PTX ISA 9.0 does not say it.
	if start := int64(b.at[0]) * int64(m.ElementSize); start%alignBulk != 0 {
		w.Fault(&Stop{Kind: fault.Illegal, In: in, Lane: l, Detail: fmt.Sprintf("the innermost coordinate %d is at %d bytes, not at a multiple of %d", b.at[0], start, alignBulk)})
	}
	b.tensor, b.Bytes = m, m.Bytes()
	b.Shared = w.sharedStart(in, l, alignTensor, b.Bytes)
	if m.NaN {
		b.fill = beyond(m.ElementSize)
	}
	return b
}

// tensorMap reads the map at a generic address.
func (w *Warp) tensorMap(in *Inst, l int, addr uint64) *descriptor.TensorMap {
	w.align(in, addr, l, descriptor.TensorMapAlign)
	const size = descriptor.TensorMapSize
	s, ok := w.GenericSite(addr, size)
	if !ok || addr-s.Base > s.Span || size > s.Span-(addr-s.Base) {
		w.Fault(&Stop{Kind: fault.IllegalAddress, In: in, Lane: l, Addr: addr, Size: size, Detail: "a tensor map was expected there"})
	}
	m, err := descriptor.DecodeTensorMap(s.Bytes(addr, size, w.Index*register.Lanes+l))
	if err != nil {
		w.Fault(&Stop{Kind: fault.Illegal, In: in, Lane: l, Detail: fmt.Sprintf("%v at %#x", err, addr)})
	}
	return &m
}

// beyond is the NaN that elements beyond the bounds are read as, repeated. That of
// 16 bits is what an H200's fma.oob takes (numeric's outOfBounds); PTX does not say
// which NaN the others are.
func beyond(size uint64) (fill [8]byte) {
	nan := uint64(0x7ff77ff77ff77ff7)
	if size == 4 {
		nan = 0x7fffffff_7fffffff
	}
	binary.LittleEndian.PutUint64(fill[:], nan)
	return fill
}

// sharedStart is where in shared memory a copy begins.
func (w *Warp) sharedStart(in *Inst, l int, align, size uint64) uint64 {
	addr := sharedOffset(w.address(in, l))
	w.align(in, addr, l, align)
	if limit, off := w.CTA.SharedBytes, addr-w.CTA.SharedStart; off > limit || size > limit-off {
		w.Fault(&Stop{Kind: fault.IllegalAddress, In: in, Lane: l, Addr: addr, Size: size, Space: ptxir.SpaceShared, Limit: limit})
	}
	return addr
}

//go:norace
func bulkCopy(w *Warp, in *Inst, m uint32) {
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		b := w.BulkOf(in, l)
		b.Pieces(func(p descriptor.Piece) { w.movePiece(in, l, &b, p) })
		if b.Loads {
			w.completeTx(in, l, b.Bytes)
		}
	}
}

//go:norace
func (w *Warp) movePiece(in *Inst, l int, b *Bulk, p descriptor.Piece) {
	// A swizzle stays within 1 KiB, which may be more than the block has.
	limit, off := w.CTA.SharedBytes, p.Shared-w.CTA.SharedStart
	if off > limit || p.Bytes > limit-off {
		w.Fault(&Stop{Kind: fault.IllegalAddress, In: in, Lane: l, Addr: p.Shared, Size: p.Bytes, Space: ptxir.SpaceShared, Limit: limit})
	}
	shared := unsafe.Slice((*byte)(unsafe.Add(w.CTA.sharedHost(), off)), p.Bytes)
	if p.Beyond {
		for i := 0; b.Loads && i < len(shared); i++ { // nothing is stored there
			shared[i] = b.fill[i%8]
		}
		return
	}
	s, ok := w.globalSite(p.Global, p.Bytes)
	if !ok || !b.Loads && w.CTA.Memory.ReadOnly(p.Global, p.Bytes) {
		detail := ""
		if ok {
			detail = "a store into read-only memory"
		}
		w.Fault(&Stop{Kind: fault.IllegalAddress, In: in, Lane: l, Addr: p.Global, Size: p.Bytes, Space: ptxir.SpaceGlobal, Detail: detail})
	}
	global := s.Bytes(p.Global, p.Bytes, 0)
	if b.Loads {
		copy(shared, global)
	} else {
		copy(global, shared)
	}
}

// completeTx tells the mbarrier of a load that its bytes have arrived.
//
//go:norace
func (w *Warp) completeTx(in *Inst, l int, size uint64) {
	addr := w.Raw(in.More[0], register.Class(in.Members), l)
	p := (*uint64)(w.sharedPointer(in, &Site{}, addr, l, 8))
	b := loadMbarrier(*p)
	b.tx -= int64(size)
	b.settle()
	*p = b.word()
}
