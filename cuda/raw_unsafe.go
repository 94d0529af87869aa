// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// The calls below and those of zraw.go are for C code that found no
// [Driver.EntryPoint]: the border to Python exports C functions with the
// driver's ABI that forward to them. Each makes one driver call, without
// checks, locks, allocations or a change of context, and returns the CUresult.

// RawLaunchKernelEx is cuLaunchKernelEx without its extra argument. config is a
// *CUlaunchConfig and params a void**, both in C memory or pinned.
func (d *Driver) RawLaunchKernelEx(config unsafe.Pointer, f uintptr, params unsafe.Pointer) int32 {
	return int32(d.api.CuLaunchKernelEx((*driver.CUlaunchConfig)(config), driver.CUfunction(f), params))
}

// RawStreamGetCaptureInfo is cuStreamGetCaptureInfo for one dependency: node is
// stored where the caller has room for it, and left alone if there are none or
// several.
func (d *Driver) RawStreamGetCaptureInfo(s uintptr, status *int32, id *uint64, graph, node *uintptr, n *uint64) int32 {
	info, r := d.api.CuStreamGetCaptureInfo(driver.CUstream(s), true)
	*status, *id, *graph, *n = int32(info.Status), info.ID, uintptr(info.Graph), uint64(len(info.Deps))
	if len(info.Deps) == 1 {
		*node = uintptr(info.Deps[0])
	}
	return int32(r)
}

// RawThreadExchangeStreamCaptureMode is cuThreadExchangeStreamCaptureMode: it
// sets the calling thread's mode and stores the one it had in mode.
func (d *Driver) RawThreadExchangeStreamCaptureMode(mode *int32) int32 {
	old, r := d.api.CuThreadExchangeStreamCaptureMode(driver.CUstreamCaptureMode(*mode))
	if r == driver.CUDA_SUCCESS {
		*mode = int32(old)
	}
	return int32(r)
}

// RawGraphAddKernelNode is cuGraphAddKernelNode, which stores the new node in
// node. params is a *CUDA_KERNEL_NODE_PARAMS.
func (d *Driver) RawGraphAddKernelNode(node *uintptr, g uintptr, deps []uintptr, params unsafe.Pointer) int32 {
	before := unsafe.Slice((*driver.CUgraphNode)(unsafe.Pointer(unsafe.SliceData(deps))), len(deps))
	n, r := d.api.CuGraphAddKernelNode(driver.CUgraph(g), before, (*driver.CUDA_KERNEL_NODE_PARAMS)(params))
	*node = uintptr(n)
	return int32(r)
}

// RawGraphAddMemcpyNode is cuGraphAddMemcpyNode, which stores the new node in
// node. params is a *CUDA_MEMCPY3D.
func (d *Driver) RawGraphAddMemcpyNode(node *uintptr, g uintptr, deps []uintptr, params unsafe.Pointer, ctx uintptr) int32 {
	before := unsafe.Slice((*driver.CUgraphNode)(unsafe.Pointer(unsafe.SliceData(deps))), len(deps))
	n, r := d.api.CuGraphAddMemcpyNode(driver.CUgraph(g), before, (*driver.CUDA_MEMCPY3D)(params), driver.CUcontext(ctx))
	*node = uintptr(n)
	return int32(r)
}

// RawGraphExecKernelNodeSetParams is cuGraphExecKernelNodeSetParams. params is a
// *CUDA_KERNEL_NODE_PARAMS.
func (d *Driver) RawGraphExecKernelNodeSetParams(x, node uintptr, params unsafe.Pointer) int32 {
	return int32(d.api.CuGraphExecKernelNodeSetParams(driver.CUgraphExec(x), driver.CUgraphNode(node), (*driver.CUDA_KERNEL_NODE_PARAMS)(params)))
}

// RawGraphExecMemcpyNodeSetParams is cuGraphExecMemcpyNodeSetParams. params is a
// *CUDA_MEMCPY3D.
func (d *Driver) RawGraphExecMemcpyNodeSetParams(x, node uintptr, params unsafe.Pointer, ctx uintptr) int32 {
	return int32(d.api.CuGraphExecMemcpyNodeSetParams(driver.CUgraphExec(x), driver.CUgraphNode(node), (*driver.CUDA_MEMCPY3D)(params), driver.CUcontext(ctx)))
}
