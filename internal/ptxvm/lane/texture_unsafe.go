// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/descriptor"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// tex: a is the handle, more are the coordinates and the 4 destinations, which may
// be left out.
func (s *selection) tex() error {
	ir, in := s.ir, s.in
	if len(ir.Src) < 2 || len(ir.Src) > 3 || len(ir.Dst) != 4 {
		return fmt.Errorf("%d operands and %d destinations, want 2 or 3 and 4", len(ir.Src), len(ir.Dst))
	}
	if err := s.take(&in.A, ir.Src[0], register.Class64); err != nil {
		return err
	}
	for _, r := range append(ir.Src[1:len(ir.Src):len(ir.Src)], ir.Dst...) {
		place := register.None
		if r != ptxir.NoReg {
			if err := s.take(&place, r, register.Class32); err != nil {
				return err
			}
		}
		in.More = append(in.More, place)
	}
	in.Site = s.d.newSite()
	in.Fn = tex
	return nil
}

//go:norace
func tex(w *Warp, in *Inst, m uint32) {
	n := len(in.More) - 4
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		t := w.texture(in, l)
		if t.Fetch != (n == 1) || n == 1 && in.IR.From != ptxir.S32 {
			detail := "a texture of rows is read by two coordinates"
			if t.Fetch {
				detail = "a texture of linear memory is read by one whole number"
			}
			w.Fault(&Stop{Kind: fault.Illegal, In: in, Lane: l, Detail: detail})
		}
		for c, v := range w.texel(in, l, &t, n) {
			if place := in.More[n+c]; place != register.None {
				w.U32(place)[l] = v
			}
		}
	}
}

// texel reads a texture at a lane's coordinates.
func (w *Warp) texel(in *Inst, l int, t *descriptor.Texture, n int) [4]uint32 {
	s := w.site(in.Site)
	read := func(addr uint64) []byte {
		if size := t.Size(); addr-s.Base >= s.Span || size > s.Span-(addr-s.Base) {
			var ok bool
			if *s, ok = w.globalSite(addr, size); !ok {
				*s = Site{}
				w.Fault(&Stop{Kind: fault.IllegalAddress, In: in, Lane: l, Addr: addr, Size: size, Space: ptxir.SpaceGlobal, Detail: "the memory of the texture"})
			}
		}
		return s.Bytes(addr, t.Size(), 0)
	}
	x := w.U32(in.More[0])[l]
	if n == 1 {
		return t.FetchAt(int64(int32(x)), read)
	}
	y := w.U32(in.More[1])[l]
	if in.IR.From == ptxir.S32 {
		return t.At(int64(int32(x)), int64(int32(y)), read)
	}
	return t.Sample(math.Float32frombits(x), math.Float32frombits(y), read)
}

// texture reads the texture that a lane's handle stands for.
func (w *Warp) texture(in *Inst, l int) descriptor.Texture {
	handle := w.U64(in.A)[l]
	s, ok := w.globalSite(handle, descriptor.TextureSize)
	if !ok {
		w.Fault(&Stop{Kind: fault.IllegalAddress, In: in, Lane: l, Addr: handle, Size: descriptor.TextureSize, Space: ptxir.SpaceGlobal, Detail: "this is the handle of no texture"})
	}
	t, err := descriptor.DecodeTexture(s.Bytes(handle, descriptor.TextureSize, 0))
	if err != nil {
		w.Fault(&Stop{Kind: fault.Illegal, In: in, Lane: l, Detail: fmt.Sprintf("%v at %#x", err, handle)})
	}
	return t
}
