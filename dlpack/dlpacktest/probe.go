// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package dlpacktest drives the exchange core of package dlpack from tests,
// which may not use cgo themselves. Nothing but tests imports it.
package dlpacktest

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
#include <stdlib.h>
#include <string.h>
#include "probe.h"
*/
import "C"

import (
	"unsafe"

	_ "github.com/cudago/cudago/dlpack" // has the C code that this package calls
)

// A Cell is an owner cell of host memory whose release is counted.
type Cell struct{ c *C.cudago_cell }

// NewCell returns a cell of size bytes with one count.
func NewCell(size int) Cell { return Cell{C.probe_cell(C.uint64_t(size))} }

// Retain takes a count.
func (c Cell) Retain() { C.cudago_cell_retain(c.c) }

// Release gives a count back as a consumer on any thread would.
func (c Cell) Release() { C.cudago_cell_release(c.c) }

// ReleaseLocked gives a count back as a holder of Python's lock would.
func (c Cell) ReleaseLocked() { C.cudago_cell_release_gil(c.c) }

// ReleaseOnThreads gives n counts back, each on an operating-system thread of
// its own that Go does not know; at most 64.
func (c Cell) ReleaseOnThreads(n int) bool { return C.probe_release_on_threads(c.c, C.int(n)) == 0 }

// ID returns the cell's number.
func (c Cell) ID() uint64 { return uint64(c.c.id) }

// Size returns the cell's size in bytes, and whether it is read-only.
func (c Cell) Size() (size uint64, readonly bool) {
	return uint64(c.c.size), c.c.flags&C.CUDAGO_CELL_READONLY != 0
}

// Released returns how many cells of NewCell were released.
func Released() int64 { return int64(C.probe_cells_released()) }

// CountPokes turns the counting of requests to drain on or off.
func CountPokes(on bool) {
	n := C.int(0)
	if on {
		n = 1
	}
	C.probe_poke(n)
}

// Pokes returns how many requests to drain were counted.
func Pokes() int64 { return int64(C.probe_pokes()) }

// FailAt makes the n-th allocation of the exchange core fail; 0: none.
func FailAt(n int) { C.cudago_exchange_fail_at(C.int(n)) }

// A Tensor is a DLTensor with its arrays in Go. Strides nil is a null pointer,
// and so is Shape.
type Tensor struct {
	Data                 uintptr
	DeviceType, DeviceID int32
	NDim                 int32
	Code, Bits           uint8
	Lanes                uint16
	Shape, Strides       []int64
	ByteOffset           uint64
}

// array copies a to C memory.
func array(a []int64) *C.int64_t {
	if a == nil {
		return nil
	}
	p := C.malloc(C.size_t(8*len(a) + 8))
	if len(a) > 0 {
		C.memcpy(p, unsafe.Pointer(&a[0]), C.size_t(8*len(a)))
	}
	return (*C.int64_t)(p)
}

// with calls fn with t as C has it.
func (t Tensor) with(fn func(*C.DLTensor)) {
	shape, strides := array(t.Shape), array(t.Strides)
	defer C.free(unsafe.Pointer(shape))
	defer C.free(unsafe.Pointer(strides))
	d := (*C.DLTensor)(C.calloc(1, C.sizeof_DLTensor))
	defer C.free(unsafe.Pointer(d))
	*(*uintptr)(unsafe.Pointer(&d.data)) = t.Data
	d.device = C.DLDevice{device_type: C.int32_t(t.DeviceType), device_id: C.int32_t(t.DeviceID)}
	d.ndim = C.int32_t(t.NDim)
	d.dtype = C.DLDataType{code: C.uint8_t(t.Code), bits: C.uint8_t(t.Bits), lanes: C.uint16_t(t.Lanes)}
	d.shape, d.strides = shape, strides
	d.byte_offset = C.uint64_t(t.ByteOffset)
	fn(d)
}

// An Extent is what a sound tensor touches, in bytes from its first element.
type Extent struct{ ItemSize, Size, Low, High int64 }

// Check returns what is wrong with t, or "".
func (t Tensor) Check(flags uint64) (e Extent, wrong string) {
	t.with(func(d *C.DLTensor) {
		var x C.cudago_extent
		if s := C.cudago_tensor_check(d, C.uint64_t(flags), &x); s != nil {
			wrong = C.GoString(s)
		}
		e = Extent{int64(x.itemsize), int64(x.size), int64(x.low), int64(x.high)}
	})
	return e, wrong
}

// NewNoted returns a cell with one count that other libraries know: pinned
// memory of size bytes at ptr for kernels and at host for everybody else.
func NewNoted(ptr, host, size uint64) Cell {
	return Cell{C.probe_noted(C.uint64_t(ptr), C.uint64_t(host), C.uint64_t(size))}
}

// Find returns the cell that t's memory lies in, with a count, and the address
// of t's first element there.
func (t Tensor) Find() (c Cell, ptr uint64, found bool) {
	t.with(func(d *C.DLTensor) {
		var e C.cudago_extent
		var p C.uint64_t
		if C.cudago_tensor_check(d, 0, &e) == nil {
			c = Cell{C.cudago_exported_find(d, &e, &p)}
			ptr, found = uint64(p), c.c != nil
		}
	})
	return c, ptr, found
}

// An Export is a managed tensor that was given away.
type Export struct {
	versioned *C.DLManagedTensorVersioned
	legacy    *C.DLManagedTensor
}

// Export exports t, which describes memory of c. The second result is false if
// there was no memory.
func (c Cell) Export(t Tensor, legacy bool) (x Export, ok bool) {
	t.with(func(d *C.DLTensor) {
		if legacy {
			x.legacy = C.cudago_export_legacy(d, c.c)
		} else {
			x.versioned = C.cudago_export(d, c.c, 0, C.CUDAGO_WAY_CAPSULE)
		}
	})
	return x, x.legacy != nil || x.versioned != nil
}

// Tensor returns what the export says.
func (x Export) Tensor() Tensor {
	var d C.DLTensor
	if x.legacy != nil {
		d = x.legacy.dl_tensor
	} else {
		d = x.versioned.dl_tensor
	}
	t := Tensor{
		Data: uintptr(d.data), DeviceType: int32(d.device.device_type), DeviceID: int32(d.device.device_id),
		NDim: int32(d.ndim), Code: uint8(d.dtype.code), Bits: uint8(d.dtype.bits), Lanes: uint16(d.dtype.lanes),
		ByteOffset: uint64(d.byte_offset), Shape: []int64{}, Strides: []int64{},
	}
	for i := range int(d.ndim) {
		t.Shape = append(t.Shape, int64(unsafe.Slice(d.shape, d.ndim)[i]))
		t.Strides = append(t.Strides, int64(unsafe.Slice(d.strides, d.ndim)[i]))
	}
	return t
}

// Delete runs the export's deleter.
func (x Export) Delete() {
	C.cudago_dl_delete(x.versioned)
	C.cudago_dl_delete_legacy(x.legacy)
}

// DeleteOnThread runs the deleter on a thread that Go does not know.
func (x Export) DeleteOnThread() bool { return C.probe_delete_on_thread(x.versioned) == 0 }

// Import takes a tensor of four float32 from a made-up producer, of the legacy
// kind or not, with a deleter or without. False if there was no memory; then
// the producer's deleter is run, as a consumer must.
func Import(legacy, withoutDeleter bool) (Cell, bool) {
	without := C.int(0)
	if withoutDeleter {
		without = 1
	}
	c := C.cudago_foreign_new()
	e := C.cudago_extent{itemsize: 4, size: 4, high: 16}
	of := &C.cudago_peer_named(nil).ways
	switch {
	case legacy && c == nil:
		C.cudago_dl_delete_legacy(C.probe_foreign_legacy(without))
	case c == nil:
		C.cudago_dl_delete(C.probe_foreign(without))
	case legacy:
		C.cudago_foreign_take_legacy(c, C.probe_foreign_legacy(without), &e, &of[C.CUDAGO_WAY_LEGACY])
	default:
		C.cudago_foreign_take(c, C.probe_foreign(without), &e, &of[C.CUDAGO_WAY_CAPSULE])
	}
	return Cell{c}, c != nil
}

// NewForeign returns a cell for an import into which nothing was taken.
func NewForeign() Cell { return Cell{C.cudago_foreign_new()} }

// Deleted returns how often a made-up producer's deleter ran.
func Deleted() int64 { return int64(C.probe_deleted()) }
