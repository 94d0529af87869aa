// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// operand is one side of a copy or a fill: size bytes at an address of any kind
// of memory.
type operand struct {
	addr, size uint64
	known      *allocation // nil for pageable memory and for module variables
	array      bool        // the memory is a CUDA array's
}

// operand checks an address at the time of the call.
func (d *simulator) operand(addr, size uint64) (operand, driver.CUresult) {
	o := operand{addr: addr, size: size, known: d.space.find(addr)}
	switch {
	case addr == 0 || addr+size < addr:
		return o, driver.CUDA_ERROR_INVALID_VALUE
	case o.known != nil:
		if size > o.known.size-(addr-o.known.base) {
			return o, driver.CUDA_ERROR_INVALID_VALUE
		}
	case isSimulated(addr):
		m := d.memoryOf(addr)
		if m == nil {
			return o, driver.CUDA_ERROR_INVALID_VALUE
		}
		if _, err := m.Bytes(addr, size); err != nil {
			return o, driver.CUDA_ERROR_INVALID_VALUE
		}
	}
	return o, driver.CUDA_SUCCESS
}

// pageable reports whether the operand is ordinary host memory.
func (o *operand) pageable() bool { return o.known == nil && !isSimulated(o.addr) }

// isReserved reports whether the operand is memory of a graph that is not
// allocated now: nodes may name it, streams may not.
func (o *operand) isReserved() bool { return o.known != nil && o.known.isReserved() }

// memoryType is what updates must not change about the kind of memory.
func (o *operand) memoryType() driver.CUmemorytype {
	if o.array {
		return driver.CU_MEMORYTYPE_ARRAY
	}
	if isSimulated(o.addr) || o.known != nil && o.known.kind == memManaged {
		return driver.CU_MEMORYTYPE_DEVICE
	}
	return driver.CU_MEMORYTYPE_HOST
}

// memory is the device memory that the operand lies in, or did.
func (o *operand) memory(x *execution) *memory.Memory {
	if !isSimulated(o.addr) {
		return nil
	}
	if o.known != nil {
		return o.known.ctx.dev.memory
	}
	if m := x.sim.memoryOf(o.addr); m != nil {
		return m
	}
	return x.ctx.dev.memory
}

// pointer resolves the operand when the work runs. The memory must be held
// meanwhile.
func (o *operand) pointer(m *memory.Memory) (unsafe.Pointer, *failure) {
	if m == nil {
		if o.known != nil && o.known.gone.Load() {
			return nil, &failure{driver.CUDA_ERROR_ILLEGAL_ADDRESS,
				fmt.Sprintf("access of %d bytes at %#x, in host memory of %d bytes at %#x that was freed",
					o.size, o.addr, o.known.size, o.known.base)}
		}
		return hostPointer(o.addr), nil
	}
	p, err := m.Bytes(o.addr, o.size)
	return p, failureOf(err)
}

// use resolves operands, keeps their memory mapped while touch runs, and turns
// faults of host memory into a failure.
func use(x *execution, touch func(p [2]unsafe.Pointer), operands ...*operand) *failure {
	var p [2]unsafe.Pointer
	for i, o := range operands {
		m := o.memory(x)
		if m != nil {
			defer m.Hold()()
		}
		var f *failure
		if p[i], f = o.pointer(m); f != nil {
			return f
		}
	}
	return guardHost(func() { touch(p) })
}
