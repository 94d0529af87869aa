// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/cudago/cudago/cuda/internal/driver"

func (d *simulator) CuGraphConditionalHandleCreate(driver.CUgraph, driver.CUcontext, uint32, uint32) (driver.CUgraphConditionalHandle, driver.CUresult) {
	return 0, driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuGraphAddNode(driver.CUgraph, []driver.CUgraphNode, *driver.CUgraphNodeParams) (driver.CUgraphNode, []driver.CUgraph, driver.CUresult) {
	return 0, nil, driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuGraphAddMemAllocNode(driver.CUgraph, []driver.CUgraphNode, *driver.CUDA_MEM_ALLOC_NODE_PARAMS) (driver.CUgraphNode, driver.CUresult) {
	return 0, driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuGraphAddMemFreeNode(driver.CUgraph, []driver.CUgraphNode, driver.CUdeviceptr) (driver.CUgraphNode, driver.CUresult) {
	return 0, driver.CUDA_ERROR_NOT_SUPPORTED
}
