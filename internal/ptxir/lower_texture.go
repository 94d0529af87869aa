// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import "github.com/cudago/cudago/internal/ptx"

// tex lowers {d, d, d, d}, [texture, {coordinates}] [, level | , {step}, {step}],
// where the texture is a handle in a register, with its sampler in it.
//
// PTX ISA, "Texture Instructions: tex".
func tex(b *body) {
	in := b.instr()
	g, _ := b.geometry()
	want := 2 + int(g.Detail)
	if n := len(b.ins.Operands); n > want && n <= want+2 {
		b.refuse(hintTexture, "offsets of coordinates and comparisons of depths are not simulated")
	}
	b.count(want)
	d := &b.ins.Operands[0]
	if d.Kind == ptx.OperandPair {
		b.refuse(hintTexture, "whether the memory of a texture is resident is not simulated")
	}
	in.Src = b.sampled(&in, &b.ins.Operands[1], "texture", in.From)
	for i := range b.ins.Operands[2:] {
		in.Src = b.detail(in.Src, &b.ins.Operands[2+i], in.From, g)
	}
	if d.Kind != ptx.OperandVector || len(d.Elems) != 4 {
		b.invalid("%s sets 4 registers in braces", b.ins.Mnemonic)
	}
	for i := range d.Elems {
		in.Dst = b.push(in.Dst, b.destOrSink(&d.Elems[i], in.Type))
	}
	b.emit(in)
}

// detail appends a level, or a step, which has a number for each coordinate, and one
// more of three.
func (b *body) detail(list []Reg, x *ptx.Operand, coordinate Type, g Geometry) []Reg {
	if g.Detail == DetailLevel {
		return b.push(list, b.source(x, coordinate))
	}
	places := g.Rank
	if places == 3 {
		places = 4
	}
	if x.Kind != ptx.OperandVector || len(x.Elems) != places {
		b.invalid("%s takes two steps of %d numbers in braces", b.ins.Mnemonic, places)
	}
	for i := range g.Rank {
		list = b.push(list, b.source(&x.Elems[i], F32))
	}
	return list
}

// suld lowers d, [surface, {coordinates}], where the surface is a handle in a
// register.
//
// PTX ISA, "Surface Instructions: suld".
func suld(b *body) {
	b.count(2)
	in := b.instr()
	in.Src = b.sampled(&in, &b.ins.Operands[1], "surface", S32)
	in.Dst = b.transfer(&b.ins.Operands[0], in.Type, b.loaded)
	b.emit(in)
}

// sust lowers [surface, {coordinates}], a.
//
// PTX ISA, "Surface Instructions: sust".
func sust(b *body) {
	b.count(2)
	in := b.instr()
	at := b.sampled(&in, &b.ins.Operands[0], "surface", S32)
	values := b.transfer(&b.ins.Operands[1], in.Type, b.stored)
	in.Src = append(append(b.room(len(at)+len(values)), at...), values...)
	b.emit(in)
}
