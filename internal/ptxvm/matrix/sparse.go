// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import "github.com/cudago/cudago/internal/ptxvm/register"

// In a sparse A two of four adjacent elements are kept (of tf32 one of two, of
// 4-bit types two of four pairs), and 4 bits of metadata say where those stood:
// two numbers of 2 bits, that of the element with the lower column first.
//
// Rows g and g+8 have their metadata in lanes 4g…4g+3. Of elements of 16 and 32
// bits a lane has 16 bits for each of the two rows; of smaller ones 32 bits for
// one, and the next lane has those of the other. The selector says which lanes
// begin.
//
// PTX ISA, "Sparse matrix storage" and "Matrix fragments for mma.sp…".

// column is where an element of A stands that is kept as the c-th of its row.
func (p *Product) column(w register.File, row, c int) int {
	bit := 2 * c // of its number, among the row's metadata
	switch p.a.bits {
	case 32:
		bit = 4 * c
	case 4:
		bit = 2 * (c / 2)
	}
	l, high := row%8*4, row/8
	if p.a.bits >= 16 {
		l += p.m.Selector*(p.k*p.a.bits/256) + bit/16
		bit = bit%16 + 16*high
	} else {
		l += 2*p.m.Selector + high + 2*(bit/32)
		bit %= 32
	}
	at := int(w.U32(p.metadata)[l&31] >> bit & 3)
	switch p.a.bits {
	case 32: // the number is that of the element's lower half
		return 2*c + at/2
	case 4:
		return c/4*8 + 2*at + c%2
	}
	return c/2*4 + at
}
