// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/cudago/cudago/internal/ptxir"
)

// ldmatrix and stmatrix move 8x8 matrices of 16-bit elements: lanes 8j…8j+7
// hold the addresses of matrix j's rows, and lane l holds the elements 2(l%4)
// and the next of row l/4, or of column l/4 if transposed. PTX ISA, "ldmatrix".

// matrixMove: a is the address, more the registers, imm the number of matrices.
func (s *selection) matrixMove() error {
	ir, in := s.ir, s.in
	if len(ir.Src) == 0 {
		return fmt.Errorf("an address is missing")
	}
	in.mode = ptxir.Mode(s.class(ir.Src[0]))
	if err := s.take(&in.a, ir.Src[0], operandClass(in.mode)); err != nil {
		return err
	}
	regs, fn := ir.Dst, execFn(ldmatrix)
	switch bytes := ir.From == ptxir.B8; {
	case ir.Op == ptxir.OpStmatrix:
		regs, fn = ir.Src[1:], stmatrix
	case bytes && ir.Mod&ptxir.ModTrans != 0:
		fn = ldmatrixTall
	case bytes:
		fn = ldmatrixBytes
	}
	if len(regs) != int(ir.Imm) {
		return fmt.Errorf("%d registers for %d matrices", len(regs), ir.Imm)
	}
	for _, r := range regs {
		o, err := s.d.operand(r, ptxir.Class32)
		if err != nil {
			return err
		}
		in.more = append(in.more, o)
	}
	in.imm = 0
	in.site = s.d.newSite()
	in.fn = fn
	return nil
}

type matrix8 [8][8]uint16

// matrixRow is a row of matrix j in shared memory.
func (w *warp) matrixRow(in *inst, j, row int) *[16]byte {
	l := 8*j + row
	return (*[16]byte)(w.sharedPointer(in, w.site(in.site), w.address(in, l), l, 16))
}

//go:norace
func ldmatrix(w *warp, in *inst, m uint32) {
	var loaded [4]matrix8 // all are read before a register changes: one may be the address
	for j := range in.more {
		for row := range 8 {
			loaded[j].setRow(row, w.matrixRow(in, j, row))
		}
	}
	for j, o := range in.more {
		w.spread(&loaded[j], o, in.ir.Mod&ptxir.ModTrans != 0, m)
	}
}

// spread gives the lanes their two elements of a matrix.
func (w *warp) spread(x *matrix8, o uint32, trans bool, m uint32) {
	d := w.u32(o)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		row, col := l/4, l%4*2
		if trans {
			d[l] = uint32(x[col][row]) | uint32(x[col+1][row])<<16
		} else {
			d[l] = uint32(x[row][col]) | uint32(x[row][col+1])<<16
		}
	}
}

// gather is the inverse of spread, without transposition.
func (w *warp) gather(o uint32) (x matrix8) {
	a := w.u32(o)
	for l, v := range a {
		x[l/4][l%4*2], x[l/4][l%4*2+1] = uint16(v), uint16(v>>16)
	}
	return x
}

// setRow takes a row from memory.
func (x *matrix8) setRow(row int, from *[16]byte) {
	for col := range x[row] {
		x[row][col] = binary.LittleEndian.Uint16(from[2*col:])
	}
}

//go:norace
func stmatrix(w *warp, in *inst, _ uint32) {
	for j, o := range in.more {
		for row := range 8 {
			*w.matrixRow(in, j, row) = w.storedRow(in.ir, o, row)
		}
	}
}

// storedRow is the row of a matrix that stmatrix writes.
func (w *warp) storedRow(ir *ptxir.Instr, o uint32, row int) (out [16]byte) {
	if ir.From == ptxir.B8 {
		return w.storedBytes(o, row)
	}
	x := w.gather(o)
	for col := range 8 {
		v := x[row][col]
		if ir.Mod&ptxir.ModTrans != 0 {
			v = x[col][row]
		}
		binary.LittleEndian.PutUint16(out[2*col:], v)
	}
	return out
}

// movmatrix transposes a matrix held by the warp.
func (s *selection) movmatrix() error {
	s.in.fn = movmatrix
	return s.operands(&entry{dst: class32, src: []operandClass{class32}})
}

func movmatrix(w *warp, in *inst, m uint32) {
	x := w.gather(in.a)
	w.spread(&x, in.d, true, m)
}
