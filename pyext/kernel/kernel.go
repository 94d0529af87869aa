// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package kernel

/*
#include <stdlib.h>
#include "kernel.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// Kernels are the kernels that have a block in C.
var Kernels = border.NewTable[*cuda.Kernel]("kernel")

// cudagoKernelLoad finds a kernel on a device and makes its block. In a host
// callback it leaves the time of loading to the driver.
//
//export cudagoKernelLoad
func cudagoKernelLoad(
	code C.uint64_t, name *C.char, n C.int, ordinal C.int32_t, callback C.int, st *C.cudago_status,
) (k *C.cudago_kernel) {
	guard(st, func() error {
		o, err := Codes.Get(uint64(code))
		if err != nil {
			return err
		}
		dev, err := deviceToLoadOn(o, int(ordinal), callback != 0)
		if err != nil {
			return err
		}
		kernel, err := o.Kernel(dev, C.GoStringN(name, n))
		if err != nil {
			return err
		}
		// Otherwise NVIDIA's driver would load it at the first launch, which
		// holds the GIL and would wait for callbacks that need it.
		if callback == 0 {
			err = kernel.Load()
		}
		if err == nil {
			k, err = newKernelBlock(kernel, dev, ordinal)
		}
		if err != nil {
			return border.JoinClose(err, kernel.Close)
		}
		return nil
	})
	return k
}

func newKernelBlock(kernel *cuda.Kernel, dev *cuda.Device, ordinal C.int32_t) (*C.cudago_kernel, error) {
	signature := kernel.Signature()
	if len(signature) > C.CUDAGO_MAX_PARAMS {
		return nil, &cuda.Error{
			Op: "get_kernel", Result: cuda.ErrorNotSupported,
			Detail: fmt.Sprintf("kernel %s has %d parameters, and cudago takes at most %d", kernel.Name(), len(signature), C.CUDAGO_MAX_PARAMS),
		}
	}
	facts, err := kernelFacts(kernel, dev)
	if err != nil {
		return nil, err
	}
	k := (*C.cudago_kernel)(C.calloc(1, C.size_t(C.sizeof_cudago_kernel+len(signature)*C.sizeof_cudago_param)))
	k.f, k.ctx = C.uintptr_t(kernel.Handle()), C.uintptr_t(kernel.Context().Handle())
	k.device, k.n, k.size = ordinal, C.int32_t(len(signature)), C.uint32_t(signature.Size())
	k.max_threads, k.max_shared, k.pageable = facts.threads, facts.shared, facts.pageable
	k.limits, k.programmatic, k.local_size = facts.limits, facts.programmatic, facts.local
	params := blockParams(k)
	for i, p := range signature {
		params[i]._type = paramType(p)
		params[i].offset, params[i].size = C.uint32_t(p.Offset), C.uint32_t(p.Size)
	}
	k.id = C.uint64_t(Kernels.Put(kernel))
	return k, nil
}

// cudagoKernelStores finds out through which parameters the kernel may store.
//
//export cudagoKernelStores
func cudagoKernelStores(k *C.cudago_kernel) {
	var stores []bool
	if kernel, err := Kernels.Get(uint64(k.id)); err == nil {
		stores = kernel.Stores()
	}
	params := blockParams(k)
	for i := range params {
		p := &params[i]
		switch {
		case len(stores) != int(k.n):
			p.access = C.ACCESS_UNKNOWN
		case stores[i]:
			p.access = C.ACCESS_MAY_STORE
		default:
			p.access = C.ACCESS_READS
		}
	}
}

func blockParams(k *C.cudago_kernel) []C.cudago_param {
	return unsafe.Slice((*C.cudago_param)(unsafe.Add(unsafe.Pointer(k), C.sizeof_cudago_kernel)), int(k.n))
}

func paramType(p cuda.Param) C.uint8_t {
	switch {
	case p.IsStruct():
		return C.PARAM_BYTES
	case p.IsFloat():
		return C.PARAM_FLOAT
	case strings.HasPrefix(p.Kind, "u"):
		return C.PARAM_UINT
	case strings.HasPrefix(p.Kind, "s"):
		return C.PARAM_INT
	case p.Size == 8 || p.Size == 4:
		return C.PARAM_UINT // b32 and b64: accept what fits
	}
	return C.PARAM_BITS
}

// facts are what a launch is checked against.
type facts struct {
	threads, shared, local C.uint32_t
	pageable, programmatic C.int32_t
	limits                 [6]C.uint32_t
}

func kernelFacts(kernel *cuda.Kernel, dev *cuda.Device) (f facts, err error) {
	get := func(a cuda.Attribute) C.uint32_t {
		v, e := dev.Attribute(a)
		if e != nil && err == nil {
			err = e
		}
		return C.uint32_t(v)
	}
	for i, a := range []cuda.Attribute{cuda.MaxGridDimX, cuda.MaxGridDimY, cuda.MaxGridDimZ, cuda.MaxBlockDimX, cuda.MaxBlockDimY, cuda.MaxBlockDimZ} {
		f.limits[i] = get(a)
	}
	f.pageable = C.int32_t(get(cuda.PageableMemoryAccess))
	if get(cuda.ComputeCapabilityMajor) >= 9 {
		f.programmatic = 1
	}
	threads, e := kernel.MaxThreadsPerBlock()
	if e != nil {
		return f, e
	}
	shared, e := kernel.Attribute(cuda.KernelMaxDynamicSharedSize)
	if e != nil {
		return f, e
	}
	local, e := kernel.Attribute(cuda.KernelLocalSize)
	if e != nil {
		return f, e
	}
	f.threads, f.shared, f.local = C.uint32_t(threads), C.uint32_t(shared), C.uint32_t(local)
	return f, err
}

// cudagoKernelOptIn finds out how much dynamic shared memory a block of the
// kernel can have at most, and asks for all of it if that is enough for bytes:
// so threads that ask at once, for whatever they need, ask for the same.
//
//export cudagoKernelOptIn
func cudagoKernelOptIn(k *C.cudago_kernel, bytes C.uint32_t, most *C.uint32_t, st *C.cudago_status) {
	guard(st, func() error {
		kernel, err := Kernels.Get(uint64(k.id))
		if err != nil {
			return err
		}
		all, err := kernel.MaxDynamicSharedSize()
		if err != nil {
			return err
		}
		*most = max(*most, C.uint32_t(all))
		if bytes > *most {
			return nil
		}
		return kernel.SetAttribute(cuda.KernelMaxDynamicSharedSize, int(*most))
	})
}

// cudagoCheckConfig checks a launch with clusters, or one that is programmatic.
//
//export cudagoCheckConfig
func cudagoCheckConfig(k *C.cudago_kernel, grid, block, cluster *C.uint32_t, programmatic C.int32_t, st *C.cudago_status) {
	guard(st, func() error {
		kernel, err := Kernels.Get(uint64(k.id))
		if err != nil {
			return err
		}
		dims := func(d *C.uint32_t) [3]uint32 { return *(*[3]uint32)(unsafe.Pointer(d)) }
		c := cuda.LaunchConfig{Grid: dims(grid), Block: dims(block), Cluster: dims(cluster), Programmatic: programmatic != 0}
		return c.Validate(kernel.Device())
	})
}

// cudagoKernelForget closes a kernel but leaves its block, which may still be
// read.
//
//export cudagoKernelForget
func cudagoKernelForget(k *C.cudago_kernel) {
	if kernel, ok := Kernels.Take(uint64(k.id)); ok {
		border.Reaper.Add(border.Once(kernel.Close))
	}
}

//export cudagoKernelRelease
func cudagoKernelRelease(k *C.cudago_kernel) {
	cudagoKernelForget(k)
	C.free(unsafe.Pointer(k))
}

// kernelOn returns the kernel of an object code on a device where it is loaded.
func kernelOn(code C.uint64_t, name *C.char, n C.int, ordinal C.int32_t) (*cuda.Kernel, error) {
	o, err := Codes.Get(uint64(code))
	if err != nil {
		return nil, err
	}
	dev, err := border.Driver.Load().Device(int(ordinal))
	if err != nil {
		return nil, err
	}
	return o.Kernel(dev, C.GoStringN(name, n))
}

//export cudagoKernelAttribute
func cudagoKernelAttribute(code C.uint64_t, name *C.char, n C.int, ordinal C.int32_t, attribute C.int, st *C.cudago_status) (v C.int) {
	guard(st, func() error {
		k, err := kernelOn(code, name, n, ordinal)
		if err != nil {
			return err
		}
		got, err := k.Attribute(cuda.KernelAttribute(attribute))
		v = C.int(got)
		return border.JoinClose(err, k.Close)
	})
	return v
}

//export cudagoKernelSetAttribute
func cudagoKernelSetAttribute(code C.uint64_t, name *C.char, n C.int, ordinal C.int32_t, attribute, value C.int, st *C.cudago_status) {
	guard(st, func() error {
		k, err := kernelOn(code, name, n, ordinal)
		if err != nil {
			return err
		}
		return border.JoinClose(k.SetAttribute(cuda.KernelAttribute(attribute), int(value)), k.Close)
	})
}

// cudagoKernelClusters returns the size of the largest cluster, or how many
// clusters of a shape can run at once.
//
//export cudagoKernelClusters
func cudagoKernelClusters(
	code C.uint64_t, name *C.char, n C.int, ordinal C.int32_t, shape *C.cudago_shape, active C.int, st *C.cudago_status,
) (v C.int) {
	guard(st, func() error {
		k, err := kernelOn(code, name, n, ordinal)
		if err != nil {
			return err
		}
		ask := k.MaxClusterSize
		if active != 0 {
			ask = k.MaxActiveClusters
		}
		got, err := ask(clusterConfig(shape))
		v = C.int(got)
		return border.JoinClose(err, k.Close)
	})
	return v
}

// clusterConfig is what counts for occupancy.
func clusterConfig(shape *C.cudago_shape) cuda.LaunchConfig {
	dims := func(d [3]C.uint32_t) [3]uint32 { return [3]uint32{uint32(d[0]), uint32(d[1]), uint32(d[2])} }
	return cuda.LaunchConfig{
		Grid: dims(shape.grid), Block: dims(shape.block), Cluster: dims(shape.cluster),
		SharedMemory: uint32(shape.shared_memory), Cooperative: shape.cooperative != 0,
	}
}

//export cudagoKernelBlocks
func cudagoKernelBlocks(code C.uint64_t, name *C.char, n C.int, ordinal C.int32_t, block, shared C.long, st *C.cudago_status) (v C.int) {
	guard(st, func() error {
		k, err := kernelOn(code, name, n, ordinal)
		if err != nil {
			return err
		}
		got, err := k.MaxActiveBlocks(int(block), uint64(shared))
		v = C.int(got)
		return border.JoinClose(err, k.Close)
	})
	return v
}
