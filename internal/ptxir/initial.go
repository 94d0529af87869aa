// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"encoding/binary"
	"math"

	"github.com/cudago/cudago/internal/ptx"
)

// pendingInit is an initialiser that waits for all symbols to be declared.
type pendingInit struct {
	v    *Var
	tree *ptx.Variable
}

// initialize turns initialisers into bytes and relocations.
func (l *loader) initialize() {
	for _, p := range l.inits {
		w := initWriter{l: l, v: p.v, t: elementType(p.tree), size: uint64(p.tree.Type.Size())}
		dims := make([]uint64, 0, len(p.tree.Dims)+1)
		for _, d := range p.tree.Dims {
			dims = append(dims, uint64(d))
		}
		if n := p.tree.Vector; n != 0 {
			dims = append(dims, uint64(n))
		}
		w.fill(p.tree.Init, dims, 0)
	}
	l.inits = nil
}

// initWriter writes the elements of one variable.
type initWriter struct {
	l    *loader
	v    *Var
	t    Type
	size uint64
	// open is a run of masked bytes of one address, its next mask, and the
	// offset where the run started.
	open  Reloc
	mask  uint64
	start uint64
}

// fill writes x at offset at; dims are the dimensions that are left.
//
// PTX ISA, "Initializers": as in C, missing elements are zero, and inner
// braces may be left out.
func (w *initWriter) fill(x *ptx.Init, dims []uint64, at uint64) {
	if x.Kind != ptx.InitList {
		w.element(x, at)
		return
	}
	if len(dims) == 0 {
		// A scalar in braces.
		if len(x.Elems) != 1 {
			w.l.fail(w.v.Pos.Line, "%s: %d initialisers for one element", w.v.Name, len(x.Elems))
		}
		w.fill(&x.Elems[0], nil, at)
		return
	}
	stride := w.size
	for _, d := range dims[1:] {
		stride *= d
	}
	end := at + dims[0]*stride
	for i := range x.Elems {
		e := &x.Elems[i]
		step := stride
		if e.Kind != ptx.InitList {
			step = w.size
		}
		if at+step > end {
			w.l.fail(w.v.Pos.Line, "%s has more initialisers than elements", w.v.Name)
		}
		w.fill(e, dims[1:], at)
		at += step
	}
}

func (w *initWriter) element(x *ptx.Init, at uint64) {
	if x.Kind == ptx.InitSymbol {
		w.address(x, at)
		return
	}
	if !isBits(w.t) && x.Value.Integer() == w.t.Float() || w.t.Float() && w.t != F32 && w.t != F64 {
		w.l.fail(w.v.Pos.Line, "%s: %s is no initial value of type .%s", w.v.Name, x.Value, w.t)
	}
	bits := immediate(x.Value, w.t)
	if bits == 0 {
		return
	}
	w.grow(at + w.size)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], bits)
	copy(w.v.Init[at:at+w.size], b[:])
}

// grow makes room for n leading bytes.
func (w *initWriter) grow(n uint64) {
	if uint64(len(w.v.Init)) >= n {
		return
	}
	if n > uint64(cap(w.v.Init)) {
		bigger := make([]byte, n, max(n, min(w.v.Size, 2*n)))
		copy(bigger, w.v.Init)
		w.v.Init = bigger
		return
	}
	w.v.Init = w.v.Init[:n]
}

func (w *initWriter) address(x *ptx.Init, at uint64) {
	s := w.l.symbols[x.Symbol]
	if s == nil {
		w.l.fail(w.v.Pos.Line, "%s: initialiser names %s, which is not declared", w.v.Name, x.Symbol)
	}
	r := Reloc{Offset: at, Size: uint8(w.size), Var: s.v, Addend: x.Offset, Generic: x.Generic}
	if s.fn != nil {
		r.Func = s.fn.out
	}
	if x.Mask != 0 {
		w.masked(r, x)
		return
	}
	if w.size != 4 && w.size != 8 {
		w.l.fail(w.v.Pos.Line, "%s: an address does not fit %d bytes", w.v.Name, w.size)
	}
	w.grow(at + w.size)
	w.v.Relocs = append(w.v.Relocs, r)
}

// masked joins 0xFF(x), 0xFF00(x), ... in consecutive bytes, which is how
// compilers spell a pointer inside a packed structure, into one relocation.
func (w *initWriter) masked(r Reloc, x *ptx.Init) {
	same := w.mask == x.Mask && r.Offset == w.start+uint64(w.open.Size) &&
		w.open.Var == r.Var && w.open.Func == r.Func && w.open.Addend == r.Addend && w.open.Generic == r.Generic
	switch {
	case w.size == 1 && x.Mask == 0xff:
		w.open, w.start = r, r.Offset
		w.open.Size = 1
	case w.size == 1 && same:
		w.open.Size++
	default:
		w.l.fail(w.v.Pos.Line, "%s: the masks of an address must take its bytes in order", w.v.Name)
	}
	w.mask = x.Mask << 8
	if w.open.Size == 8 {
		w.grow(w.start + 8)
		w.v.Relocs = append(w.v.Relocs, w.open)
	}
}

// immediate converts a literal to the bits of a value of type t.
//
// PTX ISA, "Constants": converted to the appropriate size at each use. Like
// ptxas, a double becomes a single where one is wanted, but the bits of a
// single written as 0f are not made a double's: they are its low half.
func immediate(x ptx.Literal, t Type) uint64 {
	switch t {
	case F64:
		if x.Integer() {
			return math.Float64bits(x.Float64())
		}
		return x.Bits
	case F32, TF32:
		return uint64(x.Float32Bits())
	case Pred:
		if x.Bits != 0 {
			return 1
		}
		return 0
	}
	bits := x.Bits
	if n := t.Size(); n < 8 {
		bits &= 1<<(8*n) - 1
	}
	return bits
}
