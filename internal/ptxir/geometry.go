// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import "github.com/cudago/cudago/internal/ptx"

// A Geometry is how an instruction names elements of a texture or a surface.
type Geometry struct {
	Rank    int  // coordinates, without the layer
	Layered bool // the layer comes first
	Cube    bool // the coordinates are a direction
	Beyond  Beyond
	Detail  Detail
}

// Detail is how a read of a texture chooses a level of a mipmapped one. The numbers
// that it does so by come behind the coordinates.
type Detail int

// What .base, .level and .grad say: nothing, a number of the coordinates' type, two
// steps of as many numbers as there are coordinates.
const (
	DetailBase Detail = iota
	DetailLevel
	DetailGradient
)

// Beyond is what an access of a surface does beyond its bounds.
type Beyond int

// What .trap, .clamp and .zero say.
const (
	BeyondTraps Beyond = iota
	BeyondClamps
	BeyondIsZero
)

// Operands is how many registers name an element.
func (g Geometry) Operands() int {
	if g.Layered {
		return g.Rank + 1
	}
	return g.Rank
}

// Details is how many registers choose a level.
func (g Geometry) Details() int {
	switch g.Detail {
	case DetailLevel:
		return 1
	case DetailGradient:
		return 2 * g.Rank
	}
	return 0
}

func (g Geometry) imm() int64 {
	v := int64(g.Rank) | int64(g.Beyond)<<8 | int64(g.Detail)<<24
	if g.Layered {
		v |= 1 << 16
	}
	if g.Cube {
		v |= 1 << 17
	}
	return v
}

// Geometry undoes what Imm of a texture or surface instruction has.
func (in *Instr) Geometry() Geometry {
	return Geometry{
		Rank: int(in.Imm & 0xff), Beyond: Beyond(in.Imm >> 8 & 0xff), Layered: in.Imm>>16&1 != 0, Cube: in.Imm>>17&1 != 0, Detail: Detail(in.Imm >> 24),
	}
}

// geometries are the words of Geometry, and how many registers PTX has: some are
// ignored.
var geometries = map[string]struct {
	g        Geometry
	operands int
}{
	"1d": {Geometry{Rank: 1}, 1}, "2d": {Geometry{Rank: 2}, 2}, "3d": {Geometry{Rank: 3}, 4},
	"a1d": {Geometry{Rank: 1, Layered: true}, 2}, "a2d": {Geometry{Rank: 2, Layered: true}, 4},
	"cube": {Geometry{Rank: 3, Cube: true}, 4}, "acube": {Geometry{Rank: 3, Layered: true, Cube: true}, 4},
}

// sampled reads [handle, {coordinates}]: the handle of a texture or surface, and
// the coordinates, of the type, behind the layer, if there is one.
//
// PTX ISA, "Texture Instructions: tex" and "Surface Instructions: suld".
func (b *body) sampled(in *Instr, x *ptx.Operand, what string, coordinate Type) []Reg {
	if x.Kind != ptx.OperandAddress || len(x.Elems) == 0 {
		b.invalid("%s: expected [%s, {coordinates}]", b.ins.Mnemonic, what)
	}
	if n, _ := b.find(x.Name); n == nil || n.typ == TypeNone {
		b.refuse(hintTexture, "a %s that is a variable is not simulated, only one that is a handle", what)
	}
	if len(x.Elems) > 1 {
		b.refuse(hintTexture, "a sampler that is not the texture's is not simulated")
	}
	g, want := b.geometry()
	at := x.Elems[0].Elems
	if x.Elems[0].Kind != ptx.OperandVector || len(at) != want {
		b.invalid("%s takes %d coordinates in braces", b.ins.Mnemonic, want)
	}
	in.Imm = g.imm()
	handle := ptx.Operand{Kind: ptx.OperandName, Name: x.Name, Value: x.Value}
	list := b.regs(b.source(&handle, U64))
	for i := range g.Operands() {
		t := coordinate
		if g.Layered && i == 0 {
			t = U32
		}
		list = append(list, b.source(&at[i], t))
	}
	return list
}

func (b *body) geometry() (g Geometry, operands int) {
	for _, word := range b.v.words {
		if found, ok := geometries[word]; ok {
			g.Rank, g.Layered, g.Cube, operands = found.g.Rank, found.g.Layered, found.g.Cube, found.operands
		}
		switch word {
		case "clamp":
			g.Beyond = BeyondClamps
		case "zero":
			g.Beyond = BeyondIsZero
		case "level":
			g.Detail = DetailLevel
		case "grad":
			g.Detail = DetailGradient
		}
	}
	return g, operands
}
