// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import "github.com/cudago/cudago/internal/ptxvm/matrix"

func (s *selection) mma() error {
	if s.ir.Mma == nil || !matrix.Runs(s.ir.Mma) {
		return errNoExecutor
	}
	var err error
	s.in.fn = mma
	s.in.product, err = matrix.NewProduct(s.ir, s.d.operand)
	return err
}

func mma(w *warp, in *inst, m uint32) {
	if w.cta.operands == nil {
		w.cta.operands = new(matrix.Operands)
	}
	in.product.Multiply(w.File, w.cta.operands, m)
}
