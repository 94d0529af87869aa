// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// CuPointerGetAttribute answers for memory that the driver knows. For device
// memory CU_POINTER_ATTRIBUTE_HOST_POINTER is not an error here, as it is with
// CUDA: it is where the bytes lie in this process, which lets other libraries
// see simulated device memory as host memory.
func (d *simulator) CuPointerGetAttribute(attr driver.CUpointer_attribute, p driver.CUdeviceptr) (uint64, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if !d.initialized.Load() {
		return 0, driver.CUDA_ERROR_NOT_INITIALIZED
	}
	a := d.space.find(uint64(p))
	if a == nil {
		a = d.withoutAllocation(uint64(p))
	}
	if a == nil || a.isReserved() && attr != driver.CU_POINTER_ATTRIBUTE_HOST_POINTER {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	switch attr {
	case driver.CU_POINTER_ATTRIBUTE_CONTEXT:
		return uint64(a.ctx.handle), driver.CUDA_SUCCESS
	case driver.CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		if a.kind == memPinned || a.kind == memRegistered {
			return uint64(driver.CU_MEMORYTYPE_HOST), driver.CUDA_SUCCESS
		}
		return uint64(driver.CU_MEMORYTYPE_DEVICE), driver.CUDA_SUCCESS
	case driver.CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		if _, c, _ := d.threadState(); c != nil && c.dev.memory.Denied(uint64(p)) != "" {
			return 0, driver.CUDA_ERROR_INVALID_VALUE // kernels there have no access
		}
		return uint64(p), driver.CUDA_SUCCESS
	case driver.CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if host, ok := a.ctx.dev.memory.HostPointer(uint64(p)); ok {
			return uint64(host), driver.CUDA_SUCCESS
		}
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	case driver.CU_POINTER_ATTRIBUTE_BUFFER_ID:
		return a.id, driver.CUDA_SUCCESS
	case driver.CU_POINTER_ATTRIBUTE_IS_MANAGED:
		_, _, kind, _ := a.ctx.dev.memory.Range(uint64(p))
		return uint64(toInt(a.kind == memManaged || kind == memory.ManagedVariable)), driver.CUDA_SUCCESS
	case driver.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return uint64(a.ctx.dev.ordinal), driver.CUDA_SUCCESS
	}
	return 0, driver.CUDA_ERROR_NOT_SUPPORTED
}

// withoutAllocation describes a module's variable, or mapped memory, as an
// allocation.
func (d *simulator) withoutAllocation(addr uint64) *allocation {
	if !isSimulated(addr) {
		return nil
	}
	for _, dev := range d.devices {
		if base, size, _, ok := dev.memory.Range(addr); ok {
			if c := dev.primaryContext(); c != nil {
				a := &allocation{base: base, size: size, kind: memDevice, ctx: c}
				if m := d.virtual.find(addr); m != nil {
					a.id = m.id
				}
				return a
			}
		}
	}
	return nil
}
