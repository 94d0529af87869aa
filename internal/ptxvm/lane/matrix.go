// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"fmt"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/matrix"
	"github.com/cudago/cudago/internal/ptxvm/register"
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
	in.Mode = ptxir.Mode(s.class(ir.Src[0]))
	if err := s.take(&in.A, ir.Src[0], register.Class(in.Mode)); err != nil {
		return err
	}
	regs, fn := ir.Dst, Func(ldmatrix)
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
		o, err := s.d.Operand(r, ptxir.Class32)
		if err != nil {
			return err
		}
		in.More = append(in.More, o)
	}
	in.Imm = 0
	in.Site = s.d.newSite()
	in.Fn = fn
	return nil
}

// matrixRow is a row of matrix j in shared memory.
func (w *Warp) matrixRow(in *Inst, j, row int) *[16]byte {
	l := 8*j + row
	return (*[16]byte)(w.sharedPointer(in, w.site(in.Site), w.address(in, l), l, 16))
}

//go:norace
func ldmatrix(w *Warp, in *Inst, m uint32) {
	var loaded [4]matrix.Tile // all are read before a register changes: one may be the address
	for j := range in.More {
		for row := range 8 {
			loaded[j].SetRow(row, w.matrixRow(in, j, row))
		}
	}
	for j, o := range in.More {
		loaded[j].Spread(w.File, o, in.IR.Mod&ptxir.ModTrans != 0, m)
	}
}

//go:norace
func stmatrix(w *Warp, in *Inst, _ uint32) {
	for j, o := range in.More {
		for row := range 8 {
			*w.matrixRow(in, j, row) = matrix.StoredRow(w.File, in.IR, o, row)
		}
	}
}

// movmatrix transposes a matrix held by the warp.
func (s *selection) movmatrix() error {
	s.in.Fn = movmatrix
	return s.operands(&entry{dst: register.Class32, src: []register.Class{register.Class32}})
}

func movmatrix(w *Warp, in *Inst, m uint32) {
	x := matrix.Gather(w.File, in.A)
	x.Spread(w.File, in.D, true, m)
}

// bytesRows are the rows of all matrices, unpacked.
//
//go:norace
func (w *Warp) bytesRows(in *Inst) (rows matrix.Rows) {
	for i := range 8 * len(in.More) {
		rows[i] = matrix.Unpacked(w.matrixRow(in, i/8, i%8), in.IR.Mode)
	}
	return rows
}

func ldmatrixBytes(w *Warp, in *Inst, m uint32) {
	rows := w.bytesRows(in)
	for j, o := range in.More {
		rows.Spread(w.File, o, j, m)
	}
}

func ldmatrixTall(w *Warp, in *Inst, m uint32) {
	rows := w.bytesRows(in)
	for j, o := range in.More {
		rows.SpreadTall(w.File, o, j, m)
	}
}
