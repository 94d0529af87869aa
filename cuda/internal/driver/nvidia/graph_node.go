// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// The words that calls.h passes have the sizes of the structs in package
// driver, or this does not compile.
var (
	_ [unsafe.Sizeof(driver.CUmemPoolProps{})]byte                = [C.sizeof_CUmemPoolProps]byte{}
	_ [unsafe.Sizeof(driver.CUlaunchConfig{})]byte                = [C.sizeof_CUlaunchConfig]byte{}
	_ [unsafe.Sizeof(driver.CUDA_KERNEL_NODE_PARAMS{})]byte       = [C.sizeof_CUDA_KERNEL_NODE_PARAMS]byte{}
	_ [unsafe.Sizeof(driver.CUDA_MEMCPY3D{})]byte                 = [C.sizeof_CUDA_MEMCPY3D]byte{}
	_ [unsafe.Sizeof(driver.CUDA_MEMSET_NODE_PARAMS{})]byte       = [C.sizeof_CUDA_MEMSET_NODE_PARAMS]byte{}
	_ [unsafe.Sizeof(driver.CUDA_MEM_ALLOC_NODE_PARAMS{})]byte    = [C.sizeof_CUDA_MEM_ALLOC_NODE_PARAMS]byte{}
	_ [unsafe.Sizeof(driver.CUgraphNodeParams{})]byte             = [C.sizeof_CUgraphNodeParams]byte{}
	_ [unsafe.Sizeof(driver.CUmemLocation{})]byte                 = [C.sizeof_CUmemLocation]byte{}
	_ [unsafe.Sizeof(driver.CUDA_HOST_NODE_PARAMS{})]byte         = [C.sizeof_CUDA_HOST_NODE_PARAMS]byte{}
	_ [unsafe.Sizeof(driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})]byte = [C.sizeof_CUDA_GRAPH_INSTANTIATE_PARAMS]byte{}
	_ [unsafe.Sizeof(driver.GraphExecUpdateResultInfo{})]byte     = [C.sizeof_CUgraphExecUpdateResultInfo]byte{}
)

func kernelWords(p *driver.CUDA_KERNEL_NODE_PARAMS) C.CUDA_KERNEL_NODE_PARAMS {
	return *(*C.CUDA_KERNEL_NODE_PARAMS)(unsafe.Pointer(p))
}

func memcpyWords(p *driver.CUDA_MEMCPY3D) C.CUDA_MEMCPY3D {
	return *(*C.CUDA_MEMCPY3D)(unsafe.Pointer(p))
}

func memsetWords(p *driver.CUDA_MEMSET_NODE_PARAMS) C.CUDA_MEMSET_NODE_PARAMS {
	return *(*C.CUDA_MEMSET_NODE_PARAMS)(unsafe.Pointer(p))
}

func hostWords(p *driver.CUDA_HOST_NODE_PARAMS) C.CUDA_HOST_NODE_PARAMS {
	return *(*C.CUDA_HOST_NODE_PARAMS)(unsafe.Pointer(p))
}

func (d *binding) CuGraphAddKernelNode(g driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUDA_KERNEL_NODE_PARAMS) (driver.CUgraphNode, driver.CUresult) {
	o := C.cuGraphAddKernelNode(d.fn[cuGraphAddKernelNode],
		C.CUgraph(g), nodes(deps), C.size_t(len(deps)), kernelWords(params))
	return driver.CUgraphNode(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphAddMemcpyNode(g driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUDA_MEMCPY3D, ctx driver.CUcontext) (driver.CUgraphNode, driver.CUresult) {
	o := C.cuGraphAddMemcpyNode(d.fn[cuGraphAddMemcpyNode],
		C.CUgraph(g), nodes(deps), C.size_t(len(deps)), memcpyWords(params), C.CUcontext(ctx))
	return driver.CUgraphNode(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphAddMemsetNode(g driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUDA_MEMSET_NODE_PARAMS, ctx driver.CUcontext) (driver.CUgraphNode, driver.CUresult) {
	o := C.cuGraphAddMemsetNode(d.fn[cuGraphAddMemsetNode],
		C.CUgraph(g), nodes(deps), C.size_t(len(deps)), memsetWords(params), C.CUcontext(ctx))
	return driver.CUgraphNode(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphAddHostNode(g driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUDA_HOST_NODE_PARAMS) (driver.CUgraphNode, driver.CUresult) {
	o := C.cuGraphAddHostNode(d.fn[cuGraphAddHostNode],
		C.CUgraph(g), nodes(deps), C.size_t(len(deps)), hostWords(params))
	return driver.CUgraphNode(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphAddEmptyNode(g driver.CUgraph, deps []driver.CUgraphNode) (driver.CUgraphNode, driver.CUresult) {
	o := C.cuGraphAddEmptyNode(d.fn[cuGraphAddEmptyNode], C.CUgraph(g), nodes(deps), C.size_t(len(deps)))
	return driver.CUgraphNode(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphAddChildGraphNode(g driver.CUgraph, deps []driver.CUgraphNode, child driver.CUgraph) (driver.CUgraphNode, driver.CUresult) {
	o := C.cuGraphAddChildGraphNode(d.fn[cuGraphAddChildGraphNode],
		C.CUgraph(g), nodes(deps), C.size_t(len(deps)), C.CUgraph(child))
	return driver.CUgraphNode(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphAddEventRecordNode(g driver.CUgraph, deps []driver.CUgraphNode, e driver.CUevent) (driver.CUgraphNode, driver.CUresult) {
	o := C.cuGraphAddEventRecordNode(d.fn[cuGraphAddEventRecordNode],
		C.CUgraph(g), nodes(deps), C.size_t(len(deps)), C.CUevent(e))
	return driver.CUgraphNode(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphAddEventWaitNode(g driver.CUgraph, deps []driver.CUgraphNode, e driver.CUevent) (driver.CUgraphNode, driver.CUresult) {
	o := C.cuGraphAddEventWaitNode(d.fn[cuGraphAddEventWaitNode],
		C.CUgraph(g), nodes(deps), C.size_t(len(deps)), C.CUevent(e))
	return driver.CUgraphNode(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphAddMemAllocNode(g driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUDA_MEM_ALLOC_NODE_PARAMS) (driver.CUgraphNode, driver.CUresult) {
	o := C.cuGraphAddMemAllocNode(d.fn[cuGraphAddMemAllocNode],
		C.CUgraph(g), nodes(deps), C.size_t(len(deps)), (*C.CUDA_MEM_ALLOC_NODE_PARAMS)(unsafe.Pointer(params)))
	return driver.CUgraphNode(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphAddMemFreeNode(g driver.CUgraph, deps []driver.CUgraphNode, p driver.CUdeviceptr) (driver.CUgraphNode, driver.CUresult) {
	o := C.cuGraphAddMemFreeNode(d.fn[cuGraphAddMemFreeNode], C.CUgraph(g), nodes(deps), C.size_t(len(deps)), C.CUdeviceptr(p))
	return driver.CUgraphNode(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphConditionalHandleCreate(g driver.CUgraph, ctx driver.CUcontext, defaultLaunchValue, flags uint32) (driver.CUgraphConditionalHandle, driver.CUresult) {
	o := C.cuGraphConditionalHandleCreate(d.fn[cuGraphConditionalHandleCreate],
		C.CUgraph(g), C.CUcontext(ctx), C.uint(defaultLaunchValue), C.uint(flags))
	return driver.CUgraphConditionalHandle(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphAddNode(g driver.CUgraph, deps []driver.CUgraphNode, params *driver.CUgraphNodeParams) (driver.CUgraphNode, []driver.CUgraph, driver.CUresult) {
	var bodies []driver.CUgraph
	if params.Type == driver.CU_GRAPH_NODE_TYPE_CONDITIONAL {
		bodies = make([]driver.CUgraph, params.Conditional.Size)
	}
	o := C.cuGraphAddNode(d.fn[cuGraphAddNode], C.CUgraph(g), nodes(deps), C.size_t(len(deps)),
		*(*C.CUgraphNodeParams)(unsafe.Pointer(params)), (*C.CUgraph)(unsafe.Pointer(unsafe.SliceData(bodies))), C.uint32_t(len(bodies)))
	if o.r != 0 {
		return 0, nil, driver.CUresult(o.r)
	}
	return driver.CUgraphNode(o.value), bodies, driver.CUDA_SUCCESS
}

func (d *binding) CuGraphKernelNodeGetParams(n driver.CUgraphNode) (driver.CUDA_KERNEL_NODE_PARAMS, driver.CUresult) {
	var p driver.CUDA_KERNEL_NODE_PARAMS
	r := C.cuGraphKernelNodeGetParams(d.fn[cuGraphKernelNodeGetParams],
		C.CUgraphNode(n), (*C.CUDA_KERNEL_NODE_PARAMS)(unsafe.Pointer(&p)))
	return p, driver.CUresult(r)
}

func (d *binding) CuGraphMemcpyNodeGetParams(n driver.CUgraphNode) (driver.CUDA_MEMCPY3D, driver.CUresult) {
	var p driver.CUDA_MEMCPY3D
	r := C.cuGraphMemcpyNodeGetParams(d.fn[cuGraphMemcpyNodeGetParams],
		C.CUgraphNode(n), (*C.CUDA_MEMCPY3D)(unsafe.Pointer(&p)))
	return p, driver.CUresult(r)
}

func (d *binding) CuGraphMemsetNodeGetParams(n driver.CUgraphNode) (driver.CUDA_MEMSET_NODE_PARAMS, driver.CUresult) {
	var p driver.CUDA_MEMSET_NODE_PARAMS
	r := C.cuGraphMemsetNodeGetParams(d.fn[cuGraphMemsetNodeGetParams],
		C.CUgraphNode(n), (*C.CUDA_MEMSET_NODE_PARAMS)(unsafe.Pointer(&p)))
	return p, driver.CUresult(r)
}

func (d *binding) CuGraphHostNodeGetParams(n driver.CUgraphNode) (driver.CUDA_HOST_NODE_PARAMS, driver.CUresult) {
	var p driver.CUDA_HOST_NODE_PARAMS
	r := C.cuGraphHostNodeGetParams(d.fn[cuGraphHostNodeGetParams],
		C.CUgraphNode(n), (*C.CUDA_HOST_NODE_PARAMS)(unsafe.Pointer(&p)))
	return p, driver.CUresult(r)
}

func (d *binding) CuGraphKernelNodeSetParams(n driver.CUgraphNode, params *driver.CUDA_KERNEL_NODE_PARAMS) driver.CUresult {
	return driver.CUresult(C.cuGraphKernelNodeSetParams(d.fn[cuGraphKernelNodeSetParams],
		C.CUgraphNode(n), kernelWords(params)))
}

func (d *binding) CuGraphMemcpyNodeSetParams(n driver.CUgraphNode, params *driver.CUDA_MEMCPY3D) driver.CUresult {
	return driver.CUresult(C.cuGraphMemcpyNodeSetParams(d.fn[cuGraphMemcpyNodeSetParams],
		C.CUgraphNode(n), memcpyWords(params)))
}

func (d *binding) CuGraphMemsetNodeSetParams(n driver.CUgraphNode, params *driver.CUDA_MEMSET_NODE_PARAMS) driver.CUresult {
	return driver.CUresult(C.cuGraphMemsetNodeSetParams(d.fn[cuGraphMemsetNodeSetParams],
		C.CUgraphNode(n), memsetWords(params)))
}

func (d *binding) CuGraphHostNodeSetParams(n driver.CUgraphNode, params *driver.CUDA_HOST_NODE_PARAMS) driver.CUresult {
	return driver.CUresult(C.cuGraphHostNodeSetParams(d.fn[cuGraphHostNodeSetParams],
		C.CUgraphNode(n), hostWords(params)))
}
