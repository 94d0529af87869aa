// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/cudago/cudago/internal/ptx"
)

// pendingInit is an initialiser that waits for all symbols to be declared.
type pendingInit struct {
	v    *Var
	tree *ptx.Variable
	item int // where it stands in the module
}

// initialize turns initialisers into bytes and relocations.
func (l *loader) initialize() {
	for _, p := range l.inits {
		w := initWriter{l: l, v: p.v, item: p.item, t: elementType(p.tree), size: uint64(p.tree.Type.Size())}
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
	item int
	t    Type
	size uint64
}

// fill writes x at offset at; dims are the dimensions that are left.
//
// PTX ISA, "Initializers": as in C, missing elements are zero; as ptxas has it,
// no braces may be left out and none be added.
func (w *initWriter) fill(x *ptx.Init, dims []uint64, at uint64) {
	switch list := x.Kind == ptx.InitList; {
	case list != (len(dims) > 0):
		w.l.fail(w.v.Pos.Line, "%s: an array needs a list of initial values, and an element one", w.v.Name)
	case !list:
		w.element(x, at)
		return
	}
	stride := w.size
	for _, d := range dims[1:] {
		stride *= d
	}
	end := at + dims[0]*stride
	for i := range x.Elems {
		if at+stride > end {
			w.l.fail(w.v.Pos.Line, "%s has more initialisers than elements", w.v.Name)
		}
		w.fill(&x.Elems[i], dims[1:], at)
		at += stride
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
	value := immediate(x.Value, w.t)
	if value == 0 {
		return
	}
	w.grow(at + w.size)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], value)
	copy(w.v.Init[at:at+w.size], b[:])
}

// mostInitial bounds the bytes from the beginning of a variable to its last
// initial value that is not 0: a short text can ask for any number.
const mostInitial = 1 << 30

// grow makes room for n leading bytes.
func (w *initWriter) grow(n uint64) {
	if n > mostInitial {
		w.l.fail(w.v.Pos.Line, "%s has an initial value at byte %d, and they may reach to %d", w.v.Name, n-1, mostInitial)
	}
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
	s := w.l.lookup(x.Symbol, w.item)
	if s == nil {
		w.l.fail(w.v.Pos.Line, "%s: initialiser names %s, which is not declared", w.v.Name, x.Symbol)
	}
	r := Reloc{Offset: at, Size: uint8(w.size), Var: s.v, Addend: x.Offset, Generic: x.Generic}
	switch {
	case s.fn != nil && s.fn.tree.Body == nil:
		// In tables of virtual functions the pure ones are such. It stays null:
		// calling it is a fault of the kernel that does.
		return
	case s.v != nil && s.v.Extern:
		panic(&UnsupportedError{
			Module: w.l.module.Name, Line: w.v.Pos.Line,
			Reason: w.v.Name + " holds the address of " + x.Symbol + ", which this module declares but does not define",
			Hint:   hintLink,
		})
	case s.fn != nil:
		r.Func = s.fn.out
	case s.v.Space != SpaceGlobal && s.v.Space != SpaceConst:
		w.l.fail(w.v.Pos.Line, "%s: %s is in .%s, whose addresses are no initial values", w.v.Name, x.Symbol, s.v.Space)
	}
	switch {
	case x.Mask != 0:
		// 0xFF(x), 0xFF00(x), ... is how compilers spell a pointer inside a packed
		// structure, byte by byte.
		r.Shift = uint8(bits.TrailingZeros64(x.Mask))
		if w.size != 1 || x.Mask>>r.Shift != 0xff || r.Shift%8 != 0 {
			w.l.fail(w.v.Pos.Line, "%s: a mask takes one byte of an address", w.v.Name)
		}
	case w.size != 4 && w.size != 8:
		w.l.fail(w.v.Pos.Line, "%s: an address does not fit %d bytes", w.v.Name, w.size)
	}
	w.grow(at + w.size)
	w.v.Relocs = append(w.v.Relocs, r)
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
	value := x.Bits
	if n := t.Size(); n < 8 {
		value &= 1<<(8*n) - 1
	}
	return value
}
