// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import "github.com/cudago/cudago/internal/ptx"

// tex lowers {d, d, d, d}, [texture, {coordinates}], where the texture is a handle
// in a register, with its sampler in it.
//
// PTX ISA, "Texture Instructions: tex".
func tex(b *body) {
	b.count(2)
	in := b.instr()
	d := &b.ins.Operands[0]
	in.Src = b.sampled(&in, &b.ins.Operands[1], "texture", in.From)
	if d.Kind != ptx.OperandVector || len(d.Elems) != 4 {
		b.invalid("%s sets 4 registers in braces", b.ins.Mnemonic)
	}
	for i := range d.Elems {
		in.Dst = b.push(in.Dst, b.destOrSink(&d.Elems[i], in.Type))
	}
	b.emit(in)
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
