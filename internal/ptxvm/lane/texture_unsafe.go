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

// tex: a is the handle, more are the coordinates, what chooses the level, and the 4
// destinations, which may be left out.
func (s *selection) tex() error {
	ir, in := s.ir, s.in
	if n := 1 + texOperands(ir); len(ir.Src) != n || len(ir.Dst) != 4 {
		return fmt.Errorf("%d operands and %d destinations, want %d and 4", len(ir.Src), len(ir.Dst), n)
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

// texOperands is how many registers say what is read.
func texOperands(ir *ptxir.Instr) int {
	g := ir.Geometry()
	return g.Operands() + g.Details()
}

//go:norace
func tex(w *Warp, in *Inst, m uint32) {
	n := texOperands(in.IR)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		t := w.texture(in, l)
		texel := w.texel(in, l, &t, func(addr uint64) []byte { return w.textureBytes(in, l, &t, addr) })
		for c, v := range texel {
			if place := in.More[n+c]; place != register.None {
				w.U32(place)[l] = v
			}
		}
	}
}

// textureBytes is one element in memory.
func (w *Warp) textureBytes(in *Inst, l int, t *descriptor.Texture, addr uint64) []byte {
	s, size := w.site(in.Site), t.Size()
	if addr-s.Base >= s.Span || size > s.Span-(addr-s.Base) {
		var ok bool
		if *s, ok = w.globalSite(addr, size); !ok {
			*s = Site{}
			w.Fault(&Stop{Kind: fault.IllegalAddress, In: in, Lane: l, Addr: addr, Size: size, Space: ptxir.SpaceGlobal, Detail: "the memory of the texture"})
		}
	}
	return s.Bytes(addr, size, 0)
}

// texel is what a texture has at a lane's coordinates.
func (w *Warp) texel(in *Inst, l int, t *descriptor.Texture, read descriptor.Read) [4]uint32 {
	g := in.IR.Geometry()
	var layer uint32
	at, detail := in.More[:g.Operands()], in.More[g.Operands():][:g.Details()]
	if g.Layered {
		layer, at = w.U32(at[0])[l], at[1:]
	}
	if t.Fetch || in.IR.From == ptxir.S32 {
		whole, level := [3]int64{}, int32(0)
		for d, place := range at {
			whole[d] = int64(int32(w.U32(place)[l]))
		}
		if t.Fetch {
			return t.FetchAt(whole[0], read)
		}
		if g.Detail == ptxir.DetailLevel {
			level = int32(w.U32(detail[0])[l])
		}
		return t.At(whole, layer, level, read)
	}
	x := w.numbers(at, l)
	return t.Sample(x, layer, w.detail(g, detail, l, t, x), read)
}

// numbers are up to 3 of a lane's registers.
func (w *Warp) numbers(places []uint32, l int) (list [3]float32) {
	for i, place := range places {
		list[i] = math.Float32frombits(w.U32(place)[l])
	}
	return list
}

// detail is the level of detail that a lane asks for at a place.
func (w *Warp) detail(g ptxir.Geometry, places []uint32, l int, t *descriptor.Texture, at [3]float32) float32 {
	switch g.Detail {
	case ptxir.DetailLevel:
		return w.numbers(places, l)[0]
	case ptxir.DetailGradient:
		return t.Detail(at, w.numbers(places[:g.Rank], l), w.numbers(places[g.Rank:], l))
	}
	return 0
}

// TextureReads calls see with each piece of memory that a lane is about to read
// through a texture. It reads none of them, and says nothing of what will fault.
func (w *Warp) TextureReads(in *Inst, l int, see func(addr, size uint64)) {
	handle := w.U64(in.A)[l]
	s, ok := w.globalSite(handle, descriptor.TextureSize)
	if !ok {
		return
	}
	t, err := descriptor.DecodeTexture(s.Bytes(handle, descriptor.TextureSize, 0))
	if err != nil || misread(in.IR, &t) != "" {
		return
	}
	none := make([]byte, t.Size())
	w.texel(in, l, &t, func(addr uint64) []byte {
		see(addr, t.Size())
		return none
	})
}

// texture reads the texture that a lane's handle stands for.
func (w *Warp) texture(in *Inst, l int) descriptor.Texture {
	t, err := descriptor.DecodeTexture(w.handled(in, l, descriptor.TextureSize, "texture"))
	why := misread(in.IR, &t)
	if err != nil {
		why = fmt.Sprintf("%v at %#x", err, w.U64(in.A)[l])
	}
	if why != "" {
		w.Fault(&Stop{Kind: fault.Illegal, In: in, Lane: l, Detail: why})
	}
	return t
}

// handled is what a lane's handle stands for.
func (w *Warp) handled(in *Inst, l int, size uint64, what string) []byte {
	handle := w.U64(in.A)[l]
	s, ok := w.globalSite(handle, size)
	if !ok {
		w.Fault(&Stop{Kind: fault.IllegalAddress, In: in, Lane: l, Addr: handle, Size: size, Space: ptxir.SpaceGlobal, Detail: "this is the handle of no " + what})
	}
	return s.Bytes(handle, size, 0)
}

// misread says why an instruction cannot read a texture, or "".
func misread(ir *ptxir.Instr, t *descriptor.Texture) string {
	g := ir.Geometry()
	switch {
	case t.Fetch && (g.Rank != 1 || g.Layered || ir.From != ptxir.S32):
		return "a texture of linear memory is read by one whole number"
	case !t.Fetch && (g.Cube != t.Cube || g.Layered != t.Layered || !g.Cube && g.Rank != t.Rank):
		what := shape(t.Rank, t.Layered)
		if t.Cube {
			what = "the faces of a cube, of " + what
		}
		return fmt.Sprintf("a texture of %s is read by %s", what, coordinates(g))
	}
	return ""
}

func shape(rank int, layered bool) string {
	text := [...]string{1: "1 dimension", 2: "2 dimensions", 3: "3 dimensions"}[rank]
	if layered {
		text += " in layers"
	}
	return text
}

func coordinates(g ptxir.Geometry) string {
	text := [...]string{1: "1 coordinate", 2: "2 coordinates", 3: "3 coordinates"}[g.Rank]
	if g.Cube {
		text = "a direction"
	}
	if g.Layered {
		text += " in a layer"
	}
	return text
}
