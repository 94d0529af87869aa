// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func (d *binding) CuGraphInstantiateWithParams(g driver.CUgraph, params *driver.CUDA_GRAPH_INSTANTIATE_PARAMS) (driver.CUgraphExec, driver.CUresult) {
	o := C.cuGraphInstantiateWithParams(d.fn[cuGraphInstantiateWithParams],
		C.CUgraph(g), (*C.CUDA_GRAPH_INSTANTIATE_PARAMS)(unsafe.Pointer(params)))
	return driver.CUgraphExec(o.value), driver.CUresult(o.r)
}

func (d *binding) CuGraphExecDestroy(x driver.CUgraphExec) driver.CUresult {
	return driver.CUresult(C.cuGraphExecDestroy(d.fn[cuGraphExecDestroy], C.CUgraphExec(x)))
}

func (d *binding) CuGraphLaunch(x driver.CUgraphExec, s driver.CUstream) driver.CUresult {
	return driver.CUresult(C.cuGraphLaunch(d.fn[cuGraphLaunch], C.CUgraphExec(x), C.CUstream(s)))
}

func (d *binding) CuGraphUpload(x driver.CUgraphExec, s driver.CUstream) driver.CUresult {
	return driver.CUresult(C.cuGraphUpload(d.fn[cuGraphUpload], C.CUgraphExec(x), C.CUstream(s)))
}

func (d *binding) CuGraphExecUpdate(x driver.CUgraphExec, g driver.CUgraph) (driver.GraphExecUpdateResultInfo, driver.CUresult) {
	var info driver.GraphExecUpdateResultInfo
	r := C.cuGraphExecUpdate(d.fn[cuGraphExecUpdate],
		C.CUgraphExec(x), C.CUgraph(g), (*C.CUgraphExecUpdateResultInfo)(unsafe.Pointer(&info)))
	return info, driver.CUresult(r)
}

func (d *binding) CuGraphExecKernelNodeSetParams(x driver.CUgraphExec, n driver.CUgraphNode, params *driver.CUDA_KERNEL_NODE_PARAMS) driver.CUresult {
	return driver.CUresult(C.cuGraphExecKernelNodeSetParams(d.fn[cuGraphExecKernelNodeSetParams],
		C.CUgraphExec(x), C.CUgraphNode(n), kernelWords(params)))
}

func (d *binding) CuGraphExecMemcpyNodeSetParams(x driver.CUgraphExec, n driver.CUgraphNode, params *driver.CUDA_MEMCPY3D, ctx driver.CUcontext) driver.CUresult {
	return driver.CUresult(C.cuGraphExecMemcpyNodeSetParams(d.fn[cuGraphExecMemcpyNodeSetParams],
		C.CUgraphExec(x), C.CUgraphNode(n), memcpyWords(params), C.CUcontext(ctx)))
}

func (d *binding) CuGraphExecMemsetNodeSetParams(x driver.CUgraphExec, n driver.CUgraphNode, params *driver.CUDA_MEMSET_NODE_PARAMS, ctx driver.CUcontext) driver.CUresult {
	return driver.CUresult(C.cuGraphExecMemsetNodeSetParams(d.fn[cuGraphExecMemsetNodeSetParams],
		C.CUgraphExec(x), C.CUgraphNode(n), memsetWords(params), C.CUcontext(ctx)))
}

func (d *binding) CuGraphExecHostNodeSetParams(x driver.CUgraphExec, n driver.CUgraphNode, params *driver.CUDA_HOST_NODE_PARAMS) driver.CUresult {
	return driver.CUresult(C.cuGraphExecHostNodeSetParams(d.fn[cuGraphExecHostNodeSetParams],
		C.CUgraphExec(x), C.CUgraphNode(n), hostWords(params)))
}

func (d *binding) CuGraphNodeSetEnabled(x driver.CUgraphExec, n driver.CUgraphNode, enabled bool) driver.CUresult {
	var flag C.uint
	if enabled {
		flag = 1
	}
	return driver.CUresult(C.cuGraphNodeSetEnabled(d.fn[cuGraphNodeSetEnabled], C.CUgraphExec(x), C.CUgraphNode(n), flag))
}

func (d *binding) CuGraphNodeGetEnabled(x driver.CUgraphExec, n driver.CUgraphNode) (bool, driver.CUresult) {
	o := C.cuGraphNodeGetEnabled(d.fn[cuGraphNodeGetEnabled], C.CUgraphExec(x), C.CUgraphNode(n))
	return o.value != 0, driver.CUresult(o.r)
}
