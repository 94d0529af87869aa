// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"runtime"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// AllocNodeParams describe an alloc node.
type AllocNodeParams struct {
	Size uint64
	// On is the context of the device that the memory is on; nil for that of the
	// call.
	On *Context
	// Peers are the other devices whose work may use the memory.
	Peers []*Device
}

// AddAllocNode adds a node that allocates memory at each launch, always at the
// address ptr. It calls cuGraphAddMemAllocNode.
//
// Errors: an [*ArgumentError] if a peer is the device itself;
// [ErrorPeerAccessUnsupported] if a peer cannot access the memory.
func (c *Context) AddAllocNode(g GraphHandle, deps []NodeHandle, params AllocNodeParams) (n NodeHandle, ptr uint64, err error) {
	const op, pinned = "cuGraphAddMemAllocNode", 1 // CU_MEM_ALLOCATION_TYPE_PINNED
	on := params.On
	if on == nil {
		on = c
	}
	if err := on.hold(); err != nil { // it may be of another context
		return 0, 0, err
	}
	defer on.release()
	p := &driver.CUDA_MEM_ALLOC_NODE_PARAMS{Bytesize: params.Size, PoolProps: driver.CUmemPoolProps{
		AllocType: pinned, LocationType: int32(driver.CU_MEM_LOCATION_TYPE_DEVICE), LocationID: int32(on.dev.ordinal),
	}}
	var access []driver.CUmemAccessDesc
	for _, peer := range params.Peers {
		if err := peer.needPeer(op, on.dev); err != nil {
			return 0, 0, err
		}
		access = append(access, driver.CUmemAccessDesc{Location: peer.location(), Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE})
	}
	if len(access) > 0 {
		var pinner runtime.Pinner // the parameters hold its address, which cgo may not see
		defer pinner.Unpin()
		pinner.Pin(&access[0])
		p.AccessDescs, p.AccessDescCount = unsafe.Pointer(&access[0]), uint64(len(access))
	}
	leave, err := c.Enter()
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	h, r := c.drv.api.CuGraphAddMemAllocNode(driver.CUgraph(g), toNodes(deps), p)
	if r != driver.CUDA_SUCCESS {
		return 0, 0, on.failAlloc(op, r, params.Size)
	}
	return NodeHandle(h), uint64(p.Dptr), nil
}
