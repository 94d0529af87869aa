// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package hostfn gives tests a C function to hand to a driver: Go allows no
// cgo in test files. Nothing but tests imports it.
package hostfn

/*
#include <stdint.h>
#include <stdlib.h>

static void cudago_count(void *user_data)
{
	__atomic_fetch_add((int64_t *)user_data, 1, __ATOMIC_SEQ_CST);
}

static uintptr_t cudago_count_address(void) { return (uintptr_t)&cudago_count; }
static int64_t cudago_read(int64_t *cell) { return __atomic_load_n(cell, __ATOMIC_SEQ_CST); }
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// Count is the address of a C function that atomically adds 1 to the int64 at
// userData.
func Count() driver.CUhostFn { return driver.CUhostFn(C.cudago_count_address()) }

// Cell is an int64 in C memory, for use as the userData of [Count].
type Cell struct{ p *C.int64_t }

// NewCell makes a cell of 0. It lives until Free.
func NewCell() Cell { return Cell{(*C.int64_t)(C.calloc(1, C.sizeof_int64_t))} }

// UserData is the cell's address.
func (c Cell) UserData() uintptr { return uintptr(unsafe.Pointer(c.p)) }

// Value reads the cell.
func (c Cell) Value() int64 { return int64(C.cudago_read(c.p)) }

// Free gives the cell's memory back. No call on it may be pending.
func (c Cell) Free() { C.free(unsafe.Pointer(c.p)) }
