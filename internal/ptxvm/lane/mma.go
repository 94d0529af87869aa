// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import "github.com/cudago/cudago/internal/ptxvm/matrix"

func (s *selection) mma() error {
	if s.ir.Mma == nil || !matrix.Runs(s.ir.Mma) {
		return errNoExecutor
	}
	var err error
	s.in.Fn = mma
	s.in.product, err = matrix.NewProduct(s.ir, s.d.Operand)
	return err
}

func mma(w *Warp, in *Inst, m uint32) {
	if w.CTA.operands == nil {
		w.CTA.operands = new(matrix.Operands)
	}
	in.product.Multiply(w.File, w.CTA.operands, m)
}
