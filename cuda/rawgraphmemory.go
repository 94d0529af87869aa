// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "github.com/cudago/cudago/cuda/internal/driver"

// AddAllocNode adds a node that allocates size bytes on c's device at each
// launch, always at the address ptr. It calls cuGraphAddMemAllocNode.
func (c *Context) AddAllocNode(g GraphHandle, deps []NodeHandle, size uint64) (n NodeHandle, ptr uint64, err error) {
	leave, err := c.Enter()
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	const pinned = 1 // CU_MEM_ALLOCATION_TYPE_PINNED
	p := &driver.CUDA_MEM_ALLOC_NODE_PARAMS{Bytesize: size, PoolProps: driver.CUmemPoolProps{
		AllocType: pinned, LocationType: int32(driver.CU_MEM_LOCATION_TYPE_DEVICE), LocationID: int32(c.dev.ordinal),
	}}
	h, r := c.drv.api.CuGraphAddMemAllocNode(driver.CUgraph(g), toNodes(deps), p)
	if r != driver.CUDA_SUCCESS {
		return 0, 0, c.failAlloc("cuGraphAddMemAllocNode", r, size)
	}
	return NodeHandle(h), uint64(p.Dptr), nil
}

// AddFreeNode adds a node that frees the memory at ptr, allocated by an alloc
// node of this graph, or of one that was launched before. It calls
// cuGraphAddMemFreeNode.
func (c *Context) AddFreeNode(g GraphHandle, deps []NodeHandle, ptr uint64) (NodeHandle, error) {
	return callNode(c, "cuGraphAddMemFreeNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
		return api.CuGraphAddMemFreeNode(driver.CUgraph(g), toNodes(deps), driver.CUdeviceptr(ptr))
	})
}

// IsAllocated reports whether the memory of an alloc node is allocated now: a
// launch has allocated it, and no later call frees it.
func (c *Context) IsAllocated(ptr uint64) (bool, error) {
	leave, err := c.Enter()
	if err != nil {
		return false, err
	}
	defer leave()
	base, _, r := c.drv.api.CuMemGetAddressRange(driver.CUdeviceptr(ptr))
	if r == driver.CUDA_ERROR_NOT_FOUND || r == driver.CUDA_ERROR_INVALID_VALUE {
		return false, nil
	}
	// Memory of a later node may lie around an address that is free.
	return r == driver.CUDA_SUCCESS && uint64(base) == ptr, c.check("cuMemGetAddressRange", r)
}

// FreeAsync frees stream-ordered memory, which that of alloc nodes is too, after
// the work that is in s. It calls cuMemFreeAsync.
func (c *Context) FreeAsync(ptr uint64, s *Stream) error {
	return s.call("cuMemFreeAsync", func(api driver.API) driver.CUresult {
		return api.CuMemFreeAsync(driver.CUdeviceptr(ptr), s.h)
	})
}
