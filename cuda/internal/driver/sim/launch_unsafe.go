// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// Entries of the "extra" list of a launch. From cuda.h, CUDA 12.4.
const (
	extraEnd     = 0
	extraPointer = 1
	extraSize    = 2
)

// Launch attributes that change nothing here. From cuda.h, CUDA 12.4: IGNORE,
// ACCESS_POLICY_WINDOW, SYNCHRONIZATION_POLICY, CLUSTER_SCHEDULING_POLICY_PREFERENCE,
// PRIORITY, MEM_SYNC_DOMAIN_MAP, MEM_SYNC_DOMAIN.
const hints = 1<<0 | 1<<1 | 1<<3 | 1<<5 | 1<<8 | 1<<9 | 1<<10

// CuLaunchKernelEx launches a kernel.
func (d *simulator) CuLaunchKernelEx(config *driver.CUlaunchConfig, h driver.CUfunction, kernelParams unsafe.Pointer) driver.CUresult {
	if config == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	s, r := d.stream(config.HStream)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	f, r := d.function(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if f.module.ctx != s.ctx {
		return driver.CUDA_ERROR_INVALID_HANDLE
	}
	w := launches.Get().(*kernelWork)
	w.fn, w.shared, w.cooperative, w.programmatic, w.priority = f, config.SharedMemBytes, false, false, s.priority
	w.grid = [3]uint32{config.GridDimX, config.GridDimY, config.GridDimZ}
	w.block = [3]uint32{config.BlockDimX, config.BlockDimY, config.BlockDimZ}
	if r := w.prepare(config, kernelParams); r != driver.CUDA_SUCCESS {
		w.drop()
		return r
	}
	if len(w.records) > 0 {
		d.enterEvent(s, "cuLaunchKernelEx")
		defer d.leaveEvent(s)
	}
	return d.submit(s, w, driver.CU_GRAPH_NODE_TYPE_KERNEL)
}

// prepare reads attributes and parameters, and checks the launch.
func (w *kernelWork) prepare(config *driver.CUlaunchConfig, kernelParams unsafe.Pointer) driver.CUresult {
	for i := range config.NumAttrs {
		a := (*driver.CUlaunchAttribute)(unsafe.Add(config.Attrs, uintptr(i)*unsafe.Sizeof(driver.CUlaunchAttribute{})))
		var r driver.CUresult
		switch a.ID {
		case driver.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, driver.CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
			r = w.recordsEvent(a.ID, (*driver.CUlaunchEvent)(unsafe.Pointer(&a.Value)))
		default:
			r = w.attribute(a.ID, &a.Value)
		}
		if r != driver.CUDA_SUCCESS {
			return r
		}
	}
	if r := w.check(); r != driver.CUDA_SUCCESS {
		return r
	}
	return w.readParams(kernelParams)
}

func (w *kernelWork) attribute(id driver.CUlaunchAttributeID, value *[64]byte) driver.CUresult {
	switch {
	case id == driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		w.cooperative = binary.LittleEndian.Uint32(value[:]) != 0
	case id == driver.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
		// It allows a kernel to start early, and demands nothing: here it starts
		// when the work before it is done. Older devices know of no other way.
		w.programmatic = binary.LittleEndian.Uint32(value[:]) != 0 && w.fn.module.ctx.sim.config.major >= 9
	case id == driver.CU_LAUNCH_ATTRIBUTE_PRIORITY:
		w.priority = int32(binary.LittleEndian.Uint32(value[:]))
	case id == driver.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		for i := range 3 {
			if binary.LittleEndian.Uint32(value[4*i:]) > 1 {
				return driver.CUDA_ERROR_NOT_SUPPORTED
			}
		}
	case id < 0 || id >= 32, id == driver.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, id == driver.CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		return driver.CUDA_ERROR_INVALID_VALUE // the events are of launches, and a node has no stream
	case hints>>id&1 == 0:
		return driver.CUDA_ERROR_NOT_SUPPORTED
	}
	return driver.CUDA_SUCCESS
}

// readParams copies the values that kernelParams, a void**, points to.
func (w *kernelWork) readParams(kernelParams unsafe.Pointer) driver.CUresult {
	f := w.fn
	w.args = slices.Grow(w.args[:0], int(f.argBytes))[:f.argBytes]
	clear(w.args)
	if len(f.params) > 0 && kernelParams == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	for i := range f.params {
		p := &f.params[i]
		value := *(*unsafe.Pointer)(unsafe.Add(kernelParams, uintptr(i)*unsafe.Sizeof(kernelParams)))
		if value == nil {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
		copy(w.args[p.Offset:][:p.Size], unsafe.Slice((*byte)(value), p.Size))
	}
	return driver.CUDA_SUCCESS
}

// readExtra copies a packed parameter block.
func (w *kernelWork) readExtra(extra unsafe.Pointer) driver.CUresult {
	var block unsafe.Pointer
	var size uint64
	for {
		key := *(*uintptr)(extra)
		if key == extraEnd {
			break
		}
		value := *(*unsafe.Pointer)(unsafe.Add(extra, unsafe.Sizeof(extra)))
		switch key {
		case extraPointer:
			block = value
		case extraSize:
			size = *(*uint64)(value)
		default:
			return driver.CUDA_ERROR_INVALID_VALUE
		}
		extra = unsafe.Add(extra, 2*unsafe.Sizeof(extra))
	}
	if block == nil || size > uint64(w.fn.argBytes) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	w.args = make([]byte, w.fn.argBytes)
	copy(w.args, unsafe.Slice((*byte)(block), size))
	return driver.CUDA_SUCCESS
}

// newKernelWork checks the parameters of a kernel node.
func (d *simulator) newKernelWork(p *driver.CUDA_KERNEL_NODE_PARAMS) (*kernelWork, driver.CUresult) {
	if p == nil || p.Kern != 0 || p.KernelParams != nil && p.Extra != nil {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	f, r := d.function(p.Func)
	if r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if p.Ctx != 0 && p.Ctx != f.module.ctx.handle {
		return nil, driver.CUDA_ERROR_INVALID_CONTEXT
	}
	w := &kernelWork{
		fn: f, shared: p.SharedMemBytes,
		grid:  [3]uint32{p.GridDimX, p.GridDimY, p.GridDimZ},
		block: [3]uint32{p.BlockDimX, p.BlockDimY, p.BlockDimZ},
	}
	if r := w.check(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if p.Extra != nil {
		r = w.readExtra(p.Extra)
	} else {
		r = w.readParams(p.KernelParams)
	}
	return w, r
}

// pointerList is the void** of a launch.
type pointerList []unsafe.Pointer

// nodeParams is what cuGraphKernelNodeGetParams reports. Its KernelParams point
// into the work's own parameter block, which lives as long as the node has it.
//
// Preconditions: simulator.graphMu must be locked.
func (w *kernelWork) nodeParams() driver.CUDA_KERNEL_NODE_PARAMS {
	if w.pointers == nil {
		w.pointers = make(pointerList, len(w.fn.params))
		for i, p := range w.fn.params {
			w.pointers[i] = unsafe.Pointer(&w.args[p.Offset])
		}
	}
	return driver.CUDA_KERNEL_NODE_PARAMS{
		Func:     w.fn.handle,
		GridDimX: w.grid[0], GridDimY: w.grid[1], GridDimZ: w.grid[2],
		BlockDimX: w.block[0], BlockDimY: w.block[1], BlockDimZ: w.block[2],
		SharedMemBytes: w.shared,
		KernelParams:   unsafe.Pointer(unsafe.SliceData(w.pointers)),
		Ctx:            w.fn.module.ctx.handle,
	}
}
