// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"

	"github.com/cudago/cudago/cuda/internal/driver"
)

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
	err := s.call("cuMemFreeAsync", func(api driver.API) driver.CUresult {
		return api.CuMemFreeAsync(driver.CUdeviceptr(ptr), s.h)
	})
	if errors.Is(err, ErrorInvalidValue) {
		return explained(err, "the memory at %#x is not allocated now: a launch of its graph allocates it", ptr)
	}
	return explained(err, "the memory at %#x", ptr)
}
