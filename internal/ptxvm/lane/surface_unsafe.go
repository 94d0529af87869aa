// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/descriptor"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// surface: a is the handle, more are the coordinates and the elements, of the class
// in b.
func (s *selection) surface() error {
	ir, in := s.ir, s.in
	n := 1 + ir.Geometry().Operands()
	if len(ir.Src) < n {
		return fmt.Errorf("%d operands, want %d", len(ir.Src), n)
	}
	if err := s.take(&in.A, ir.Src[0], register.Class64); err != nil {
		return err
	}
	for _, r := range ir.Src[1:n] {
		var place uint32
		if err := s.take(&place, r, register.Class32); err != nil {
			return err
		}
		in.More = append(in.More, place)
	}
	elements := append(ir.Dst[:len(ir.Dst):len(ir.Dst)], ir.Src[n:]...)
	for _, r := range elements {
		place := register.None
		if r != ptxir.NoReg {
			class := s.class(r)
			in.B = uint32(class)
			if err := s.take(&place, r, class); err != nil {
				return err
			}
		}
		in.More = append(in.More, place)
	}
	in.Site = s.d.newSite()
	in.Fn = surfaceLoad
	if ir.Op == ptxir.OpSurfStore {
		in.Fn = surfaceStore
	}
	return nil
}

// surfaceBytes is how much an instruction moves.
func surfaceBytes(in *Inst) uint64 {
	return uint64((len(in.More) - in.IR.Geometry().Operands()) * in.IR.Type.Size())
}

//go:norace
func surfaceLoad(w *Warp, in *Inst, m uint32) {
	size, first := uint64(in.IR.Type.Size()), in.IR.Geometry().Operands()
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		b := w.surfaceAt(in, l)
		for i, place := range in.More[first:] {
			if place == register.None {
				continue
			}
			var v [8]byte
			if b != nil {
				copy(v[:size], b[uint64(i)*size:])
			}
			w.setElement(in, place, l, binary.LittleEndian.Uint64(v[:]))
		}
	}
}

func (w *Warp) setElement(in *Inst, place uint32, l int, v uint64) {
	if register.Class(in.B) == register.Class64 {
		w.U64(place)[l] = v
		return
	}
	w.U32(place)[l] = uint32(v)
}

//go:norace
func surfaceStore(w *Warp, in *Inst, m uint32) {
	size, first := uint64(in.IR.Type.Size()), in.IR.Geometry().Operands()
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		b := w.surfaceAt(in, l)
		for i, place := range in.More[first:] {
			if b == nil {
				break
			}
			var v [8]byte
			if register.Class(in.B) == register.Class64 {
				binary.LittleEndian.PutUint64(v[:], w.U64(place)[l])
			} else {
				binary.LittleEndian.PutUint32(v[:], w.U32(place)[l])
			}
			copy(b[uint64(i)*size:], v[:size])
		}
	}
}

// surfaceAt is the memory that a lane moves, nil beyond the bounds, where .zero
// moves nothing.
func (w *Warp) surfaceAt(in *Inst, l int) []byte {
	d, err := descriptor.DecodeSurface(w.handled(in, l, descriptor.SurfaceSize, "surface"))
	why := mismatched(in.IR, &d)
	if err != nil {
		why = fmt.Sprintf("%v at %#x", err, w.U64(in.A)[l])
	}
	if why != "" {
		w.Fault(&Stop{Kind: fault.Illegal, In: in, Lane: l, Detail: why})
	}
	size := surfaceBytes(in)
	addr, inside := w.surfacePlace(in, l, &d, size)
	beyond := in.IR.Geometry().Beyond
	switch {
	case !inside && beyond == ptxir.BeyondIsZero:
		return nil
	case !inside && (beyond == ptxir.BeyondTraps || size > d.Width):
		w.Fault(&Stop{Kind: fault.Illegal, In: in, Lane: l, Detail: "an access beyond the bounds of the surface"})
	case (addr-d.Memory)%size != 0:
		// PTX lets a device mask the address instead.
		w.Fault(&Stop{Kind: fault.Misaligned, In: in, Lane: l, Addr: addr, Size: size})
	}
	s := w.site(in.Site)
	if addr-s.Base >= s.Span || size > s.Span-(addr-s.Base) {
		var ok bool
		if *s, ok = w.globalSite(addr, size); !ok {
			*s = Site{}
			w.Fault(&Stop{Kind: fault.IllegalAddress, In: in, Lane: l, Addr: addr, Size: size, Space: ptxir.SpaceGlobal, Detail: "the memory of the surface"})
		}
	}
	return s.Bytes(addr, size, 0)
}

func (w *Warp) surfacePlace(in *Inst, l int, d *descriptor.Surface, size uint64) (addr uint64, inside bool) {
	g := in.IR.Geometry()
	at := in.More[:g.Operands()]
	var layer uint32
	if g.Layered {
		layer, at = w.U32(at[0])[l], at[1:]
	}
	var x [3]int64
	for i, place := range at {
		x[i] = int64(int32(w.U32(place)[l]))
	}
	return d.Place(x, layer, size)
}

// SurfaceAccess is the memory that a lane is about to move through a surface; of
// size 0 if there is none. It says nothing of what will fault.
func (w *Warp) SurfaceAccess(in *Inst, l int) (addr, size uint64) {
	handle := w.U64(in.A)[l]
	s, ok := w.globalSite(handle, descriptor.SurfaceSize)
	if !ok {
		return 0, 0
	}
	d, err := descriptor.DecodeSurface(s.Bytes(handle, descriptor.SurfaceSize, 0))
	if err != nil || mismatched(in.IR, &d) != "" {
		return 0, 0
	}
	size = surfaceBytes(in)
	addr, inside := w.surfacePlace(in, l, &d, size)
	if !inside && (in.IR.Geometry().Beyond != ptxir.BeyondClamps || size > d.Width) {
		return 0, 0
	}
	return addr, size
}

// mismatched says why an instruction cannot use a surface, or "".
func mismatched(ir *ptxir.Instr, d *descriptor.Surface) string {
	if g := ir.Geometry(); g.Rank != d.Rank || g.Layered != d.Layered {
		return fmt.Sprintf("a surface of %s is accessed by %s", shape(d.Rank, d.Layered), coordinates(g))
	}
	return ""
}
