// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm"
)

// mostRegisters caps the estimate of a kernel's registers. PTX may name any
// number; with this many a block of the maximum size still fits a
// multiprocessor.
const mostRegisters = registersPerSM / maxBlockThreads

// function is a kernel of a module.
type function struct {
	module     *module
	handle     driver.CUfunction
	kernel     *ptxvm.Kernel
	attributes ptxvm.KernelAttributes
	params     []ptxir.Param
	argBytes   uint32
	required   [3]uint32 // .reqntid; zero if it has none

	maxDynamicShared atomic.Uint32
	carveout         atomic.Int32
}

func newFunction(m *module, name string) (*function, driver.CUresult) {
	k, err := m.vm.Kernel(name)
	if errors.Is(err, ptxvm.ErrNotFound) {
		return nil, driver.CUDA_ERROR_NOT_FOUND
	}
	if err != nil {
		return nil, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	f := &function{module: m, kernel: k, attributes: k.Attributes(), params: k.Params()}
	f.attributes.Registers = min(f.attributes.Registers, mostRegisters)
	for _, ir := range m.ir.Kernels {
		if ir.Name == name {
			f.argBytes, f.required = ir.ArgBytes, ir.ReqThreads
		}
	}
	f.carveout.Store(-1)
	f.maxDynamicShared.Store(sharedPerBlock - min(sharedPerBlock, f.attributes.StaticSharedBytes))
	return f, driver.CUDA_SUCCESS
}

func (d *simulator) function(h driver.CUfunction) (*function, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	f := d.functions.get(h)
	if f == nil {
		return nil, driver.CUDA_ERROR_INVALID_HANDLE
	}
	return f, f.module.ctx.result()
}

// CuFuncLoad has nothing to do: cuModuleLoadDataEx has translated all kernels.
func (d *simulator) CuFuncLoad(h driver.CUfunction) driver.CUresult {
	_, r := d.function(h)
	return r
}

func (d *simulator) CuFuncGetAttribute(attrib driver.CUfunction_attribute, h driver.CUfunction) (int32, driver.CUresult) {
	f, r := d.function(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	a := &f.attributes
	switch attrib {
	case driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		return int32(a.MaxThreads), r
	case driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		return int32(a.StaticSharedBytes), r
	case driver.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
		return int32(a.ConstBytes), r
	case driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		return int32(a.LocalBytes), r
	case driver.CU_FUNC_ATTRIBUTE_NUM_REGS:
		return int32(a.Registers), r
	case driver.CU_FUNC_ATTRIBUTE_PTX_VERSION: // in fact the virtual architecture
		return int32(f.module.target), r
	case driver.CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		return int32(10*d.config.major + d.config.minor), r
	case driver.CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
		return 0, r
	case driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		return int32(f.maxDynamicShared.Load()), r
	case driver.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return f.carveout.Load(), r
	}
	return 0, driver.CUDA_ERROR_INVALID_VALUE
}

func (d *simulator) CuFuncSetAttribute(h driver.CUfunction, attrib driver.CUfunction_attribute, value int32) driver.CUresult {
	f, r := d.function(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	d.behindLaunches()
	switch attrib {
	case driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if value < 0 || int64(value)+int64(f.attributes.StaticSharedBytes) > int64(f.module.ctx.dev.profile.sharedOptin) {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
		f.maxDynamicShared.Store(uint32(value))
		return r
	case driver.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if value < -1 || value > 100 {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
		f.carveout.Store(value)
		return r
	}
	return driver.CUDA_ERROR_INVALID_VALUE
}

func (d *simulator) CuFuncGetParamInfo(h driver.CUfunction, index uint64) (offset, size uint64, r driver.CUresult) {
	f, r := d.function(h)
	if r != driver.CUDA_SUCCESS {
		return 0, 0, r
	}
	if index >= uint64(len(f.params)) {
		return 0, 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	p := &f.params[index]
	return uint64(p.Offset), uint64(p.Size), r
}

func (d *simulator) CuOccupancyMaxActiveBlocksPerMultiprocessor(h driver.CUfunction, blockSize int32, dynamicSmem uint64) (int32, driver.CUresult) {
	f, r := d.function(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if blockSize <= 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	d.behindGraphs()
	return f.activeBlocks(blockSize, dynamicSmem), r
}

// activeBlocks is how many blocks fit a multiprocessor at once.
func (f *function) activeBlocks(blockSize int32, dynamicShared uint64) int32 {
	dev := f.module.ctx.dev
	if blockSize > int32(f.attributes.MaxThreads) || dynamicShared > uint64(f.maxDynamicShared.Load()) {
		return 0
	}
	threads := (blockSize + warpSize - 1) / warpSize * warpSize
	blocks := min(dev.profile.blocksPerSM, dev.profile.threadsPerSM/threads)
	blocks = min(blocks, registersPerSM/(threads*int32(max(f.attributes.Registers, 1))))
	shared := int32(f.attributes.StaticSharedBytes) + int32(dynamicShared) + ptxvm.ReservedShared(f.module.ctx.sim.config.major)
	if shared > 0 {
		blocks = min(blocks, dev.profile.sharedPerSM/shared)
	}
	return blocks
}

// CuOccupancyMaxPotentialClusterSize fails: no device here has clusters.
func (d *simulator) CuOccupancyMaxPotentialClusterSize(h driver.CUfunction, _ *driver.CUlaunchConfig) (int32, driver.CUresult) {
	return d.noClusters(h)
}

// CuOccupancyMaxActiveClusters fails: no device here has clusters.
func (d *simulator) CuOccupancyMaxActiveClusters(h driver.CUfunction, _ *driver.CUlaunchConfig) (int32, driver.CUresult) {
	return d.noClusters(h)
}

func (d *simulator) noClusters(h driver.CUfunction) (int32, driver.CUresult) {
	if _, r := d.function(h); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return 0, driver.CUDA_ERROR_NOT_SUPPORTED
}
