// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include <stdlib.h>
#include "border.h"
*/
import "C"

import "unsafe"

// An Answer is a table on its way to Python. It crosses the border in one call:
// a call for each row would cost more than the row.
type Answer struct {
	rows, texts   int // the number of rows, and of texts in each
	numbers, ends []uint64
	bytes         []byte
}

// Row adds a row. All rows have as many numbers and texts as the first one.
func (a *Answer) Row(numbers []uint64, texts ...string) {
	a.rows, a.texts = a.rows+1, len(texts)
	a.numbers = append(a.numbers, numbers...)
	for _, text := range texts {
		a.bytes = append(a.bytes, text...)
		a.ends = append(a.ends, uint64(len(a.bytes)))
	}
}

// Give copies a to C memory in one piece, which C frees.
func (a *Answer) Give(at unsafe.Pointer) {
	to := (*C.cudago_answer)(at)
	if a.rows == 0 {
		return
	}
	words := len(a.numbers) + len(a.ends)
	p := C.malloc(C.size_t(8*words + len(a.bytes))) // never NULL: cgo ends the process
	all := unsafe.Slice((*uint64)(p), words)
	copy(all[copy(all, a.numbers):], a.ends)
	bytes := unsafe.Add(p, 8*words)
	copy(unsafe.Slice((*byte)(bytes), len(a.bytes)), a.bytes)
	to.rows = C.uint64_t(a.rows)
	to.n_numbers, to.n_texts = C.int32_t(len(a.numbers)/a.rows), C.int32_t(a.texts)
	to.numbers = (*C.uint64_t)(p)
	to.ends = (*C.uint64_t)(unsafe.Add(p, 8*len(a.numbers)))
	to.texts = (*C.char)(bytes)
}
