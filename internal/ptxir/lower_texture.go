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
	d, x := &b.ins.Operands[0], &b.ins.Operands[1]
	if x.Kind != ptx.OperandAddress || len(x.Elems) == 0 {
		b.invalid("%s: expected [texture, {coordinates}]", b.ins.Mnemonic)
	}
	if n, _ := b.find(x.Name); n == nil || n.typ == TypeNone {
		b.refuse(hintTexture, "a texture that is a variable is not simulated, only one that is a handle")
	}
	if len(x.Elems) > 1 {
		b.refuse(hintTexture, "a sampler that is not the texture's is not simulated")
	}
	coordinates := x.Elems[0].Elems
	want := 1
	if b.v.has("2d") {
		want = 2
	}
	if x.Elems[0].Kind != ptx.OperandVector || len(coordinates) != want {
		b.invalid("%s takes %d coordinates in braces", b.ins.Mnemonic, want)
	}
	if d.Kind != ptx.OperandVector || len(d.Elems) != 4 {
		b.invalid("%s sets 4 registers in braces", b.ins.Mnemonic)
	}
	handle := ptx.Operand{Kind: ptx.OperandName, Name: x.Name, Value: x.Value}
	in.Src = b.regs(b.source(&handle, U64))
	for i := range coordinates {
		in.Src = append(in.Src, b.source(&coordinates[i], in.From))
	}
	for i := range d.Elems {
		in.Dst = b.push(in.Dst, b.destOrSink(&d.Elems[i], in.Type))
	}
	b.emit(in)
}
