// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package numeric

import (
	"github.com/cudago/cudago/internal/ptxir"
)

// CompareFloats is the comparison that an instruction names.
func CompareFloats(c ptxir.Cmp, a, b float32) bool {
	unordered := a != a || b != b
	switch c {
	case ptxir.CmpEq:
		return a == b
	case ptxir.CmpNe:
		return LessOrGreater(a, b)
	case ptxir.CmpLt:
		return a < b
	case ptxir.CmpLe:
		return a <= b
	case ptxir.CmpGt:
		return a > b
	case ptxir.CmpGe:
		return a >= b
	case ptxir.CmpEqu:
		return unordered || a == b
	case ptxir.CmpNeu:
		return a != b
	case ptxir.CmpLtu:
		return unordered || a < b
	case ptxir.CmpLeu:
		return unordered || a <= b
	case ptxir.CmpGtu:
		return unordered || a > b
	case ptxir.CmpGeu:
		return unordered || a >= b
	case ptxir.CmpNum:
		return !unordered
	}
	return unordered
}

// LessOrGreater is the ordered form of !=.
func LessOrGreater[T float32 | float64](a, b T) bool { return a < b || a > b }

// Logic combines two masks of lanes as setp and lop3 say.
func Logic(op ptxir.BoolOp, r, q uint32) uint32 {
	switch op {
	case ptxir.BoolAnd:
		return r & q
	case ptxir.BoolOr:
		return r | q
	case ptxir.BoolXor:
		return r ^ q
	}
	return r
}
