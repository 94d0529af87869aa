// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// KernelNodeParams says what a kernel node launches.
type KernelNodeParams struct {
	Kernel *Kernel
	// Config is the launch's shape. Its priority counts in executables that were
	// made with [InstantiateUseNodePriority].
	Config LaunchConfig
	// Params has the C type void**: one pointer per parameter. The driver copies
	// the values before the call returns. Go memory behind it must be pinned.
	Params unsafe.Pointer
}

// MemcpyParams says what a memcpy node copies: Size bytes from Src to Dst.
// SrcHost and DstHost say that an address is pageable host memory; pinned and
// managed memory has an address of its own for the device. DstArray and SrcArray
// say that a side is the handle of a whole [Array].
type MemcpyParams struct {
	Dst, Src           uint64
	DstHost, SrcHost   bool
	DstArray, SrcArray bool
	Size               uint64 // bytes, of all rows
	Box                Box
}

// HasArray reports whether a side is an array.
func (p *MemcpyParams) HasArray() bool { return p.DstArray || p.SrcArray }

// A Box says how the bytes of a copy lie in memory: in rows of equal length, and
// these in slices. The zero Box is a single row.
type Box struct {
	Rows, Slices uint64 // rows of a slice, and slices
	Dst, Src     Pitch
}

// A Pitch says where the rows of one side of a [Box] are.
type Pitch struct {
	Row  uint64 // bytes from one row to the next
	Rows uint64 // rows from one slice to the next
}

// IsRow reports whether all bytes are in a single row.
func (b *Box) IsRow() bool { return b.Rows*b.Slices <= 1 }

// MemsetParams says what a memset node fills: Count elements of ElementSize
// bytes (1, 2 or 4) at Dst.
type MemsetParams struct {
	Dst         uint64
	Value       uint32
	ElementSize uint32 // bytes
	Count       uint64
}

// HostParams says what a host node calls: the C function Fn, of type
// void (*)(void *userData).
type HostParams struct {
	Fn, UserData uintptr
}

// KernelNodeInfo is what the driver reports about a kernel node. Params belongs
// to the node and is valid until it is changed or destroyed.
type KernelNodeInfo struct {
	Function     uintptr // CUfunction
	Grid, Block  [3]uint32
	SharedMemory uint32
	Params       unsafe.Pointer
}

func (p *KernelNodeParams) abi() *driver.CUDA_KERNEL_NODE_PARAMS {
	grid, block := p.Config.dims()
	return &driver.CUDA_KERNEL_NODE_PARAMS{
		Func:     p.Kernel.h,
		GridDimX: grid[0], GridDimY: grid[1], GridDimZ: grid[2],
		BlockDimX: block[0], BlockDimY: block[1], BlockDimZ: block[2],
		SharedMemBytes: p.Config.SharedMemory,
		KernelParams:   p.Params,
	}
}

func (p *MemcpyParams) abi() *driver.CUDA_MEMCPY3D {
	b := p.Box
	if b.IsRow() {
		b = Box{Rows: 1, Slices: 1, Dst: Pitch{p.Size, 1}, Src: Pitch{p.Size, 1}}
	}
	a := &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_UNIFIED, SrcDevice: driver.CUdeviceptr(p.Src),
		DstMemoryType: driver.CU_MEMORYTYPE_UNIFIED, DstDevice: driver.CUdeviceptr(p.Dst),
		SrcPitch: b.Src.Row, DstPitch: b.Dst.Row, SrcHeight: b.Src.Rows, DstHeight: b.Dst.Rows,
		WidthInBytes: p.Size / (b.Rows * b.Slices), Height: b.Rows, Depth: b.Slices,
	}
	if p.SrcHost {
		a.SrcMemoryType, a.SrcDevice, a.SrcHost = driver.CU_MEMORYTYPE_HOST, 0, uintptr(p.Src)
	}
	if p.DstHost {
		a.DstMemoryType, a.DstDevice, a.DstHost = driver.CU_MEMORYTYPE_HOST, 0, uintptr(p.Dst)
	}
	if p.SrcArray { // which has no pitch
		a.SrcMemoryType, a.SrcDevice, a.SrcArray, a.SrcPitch, a.SrcHeight = driver.CU_MEMORYTYPE_ARRAY, 0, driver.CUarray(p.Src), 0, 0
	}
	if p.DstArray {
		a.DstMemoryType, a.DstDevice, a.DstArray, a.DstPitch, a.DstHeight = driver.CU_MEMORYTYPE_ARRAY, 0, driver.CUarray(p.Dst), 0, 0
	}
	return a
}

func (p *MemsetParams) abi() *driver.CUDA_MEMSET_NODE_PARAMS {
	return &driver.CUDA_MEMSET_NODE_PARAMS{
		Dst: driver.CUdeviceptr(p.Dst), Value: p.Value, ElementSize: p.ElementSize,
		Width: p.Count, Height: 1,
		Pitch: p.Count * uint64(p.ElementSize), // not used for a single row; set for drivers that check it
	}
}

func (p *HostParams) abi() *driver.CUDA_HOST_NODE_PARAMS {
	return &driver.CUDA_HOST_NODE_PARAMS{Fn: driver.CUhostFn(p.Fn), UserData: p.UserData}
}

// String returns "kernel "f", grid [1 1 1], block [32 1 1], 0 bytes of shared memory".
func (p *KernelNodeParams) String() string {
	grid, block := p.Config.dims()
	return fmt.Sprintf("kernel %q, grid %v, block %v, %d bytes of shared memory", p.Kernel.Name(), grid, block, p.Config.SharedMemory)
}

// String returns "8 bytes from 0x10 to 0x20".
func (p *MemcpyParams) String() string {
	return fmt.Sprintf("%d bytes from %#x to %#x", p.Size, p.Src, p.Dst)
}

// String returns "8 elements of 4 bytes at 0x10".
func (p *MemsetParams) String() string {
	return fmt.Sprintf("%d elements of %d bytes at %#x", p.Count, p.ElementSize, p.Dst)
}

// AddMemcpyNode calls cuGraphAddMemcpyNode.
//
// Errors, here and where a node is changed: an [*ArgumentError] if what is copied
// overlaps with where it goes.
func (c *Context) AddMemcpyNode(g GraphHandle, deps []NodeHandle, p *MemcpyParams) (NodeHandle, error) {
	if err := p.apart(); err != nil {
		return 0, err
	}
	n, err := callNode(c, "cuGraphAddMemcpyNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
		return api.CuGraphAddMemcpyNode(driver.CUgraph(g), toNodes(deps), p.abi(), c.h)
	})
	return n, explained(err, "%v", p)
}

// AddMemsetNode calls cuGraphAddMemsetNode.
func (c *Context) AddMemsetNode(g GraphHandle, deps []NodeHandle, p *MemsetParams) (NodeHandle, error) {
	n, err := callNode(c, "cuGraphAddMemsetNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
		return api.CuGraphAddMemsetNode(driver.CUgraph(g), toNodes(deps), p.abi(), c.h)
	})
	return n, explained(err, "%v", p)
}

// KernelNodeParams calls cuGraphKernelNodeGetParams.
func (c *Context) KernelNodeParams(n NodeHandle) (KernelNodeInfo, error) {
	a, err := c.kernelNodeABI(n)
	return KernelNodeInfo{
		Function:     uintptr(a.Func),
		Grid:         [3]uint32{a.GridDimX, a.GridDimY, a.GridDimZ},
		Block:        [3]uint32{a.BlockDimX, a.BlockDimY, a.BlockDimZ},
		SharedMemory: a.SharedMemBytes,
		Params:       a.KernelParams,
	}, err
}

// MemcpyNodeParams calls cuGraphMemcpyNodeGetParams. Of a copy of more than one
// row, as a capture can make, it returns the first row's addresses and the
// number of bytes of all rows.
func (c *Context) MemcpyNodeParams(n NodeHandle) (MemcpyParams, error) {
	a, err := call1(c, "cuGraphMemcpyNodeGetParams", func(api driver.API) (driver.CUDA_MEMCPY3D, driver.CUresult) {
		return api.CuGraphMemcpyNodeGetParams(driver.CUgraphNode(n))
	})
	p := MemcpyParams{
		Dst: uint64(a.DstDevice), Src: uint64(a.SrcDevice),
		DstHost: a.DstMemoryType == driver.CU_MEMORYTYPE_HOST, SrcHost: a.SrcMemoryType == driver.CU_MEMORYTYPE_HOST,
		DstArray: a.DstMemoryType == driver.CU_MEMORYTYPE_ARRAY, SrcArray: a.SrcMemoryType == driver.CU_MEMORYTYPE_ARRAY,
		Size: a.WidthInBytes * max(a.Height, 1) * max(a.Depth, 1),
	}
	if p.DstArray {
		p.Dst = uint64(a.DstArray)
	}
	if p.SrcArray {
		p.Src = uint64(a.SrcArray)
	}
	if p.DstHost {
		p.Dst = uint64(a.DstHost)
	}
	if p.SrcHost {
		p.Src = uint64(a.SrcHost)
	}
	return p, err
}

// MemsetNodeParams calls cuGraphMemsetNodeGetParams.
func (c *Context) MemsetNodeParams(n NodeHandle) (MemsetParams, error) {
	a, err := call1(c, "cuGraphMemsetNodeGetParams", func(api driver.API) (driver.CUDA_MEMSET_NODE_PARAMS, driver.CUresult) {
		return api.CuGraphMemsetNodeGetParams(driver.CUgraphNode(n))
	})
	return MemsetParams{uint64(a.Dst), a.Value, a.ElementSize, a.Width * max(a.Height, 1)}, err
}

// HostNodeParams calls cuGraphHostNodeGetParams.
func (c *Context) HostNodeParams(n NodeHandle) (HostParams, error) {
	a, err := call1(c, "cuGraphHostNodeGetParams", func(api driver.API) (driver.CUDA_HOST_NODE_PARAMS, driver.CUresult) {
		return api.CuGraphHostNodeGetParams(driver.CUgraphNode(n))
	})
	return HostParams{uintptr(a.Fn), a.UserData}, err
}

// SetMemcpyNodeParams changes a node of a graph, for later instantiations. It
// calls cuGraphMemcpyNodeSetParams.
func (c *Context) SetMemcpyNodeParams(n NodeHandle, p *MemcpyParams) error {
	if err := p.apart(); err != nil {
		return err
	}
	err := call0(c, "cuGraphMemcpyNodeSetParams", func(api driver.API) driver.CUresult {
		return api.CuGraphMemcpyNodeSetParams(driver.CUgraphNode(n), p.abi())
	})
	return explained(err, "%v", p)
}

// SetMemsetNodeParams calls cuGraphMemsetNodeSetParams.
func (c *Context) SetMemsetNodeParams(n NodeHandle, p *MemsetParams) error {
	err := call0(c, "cuGraphMemsetNodeSetParams", func(api driver.API) driver.CUresult {
		return api.CuGraphMemsetNodeSetParams(driver.CUgraphNode(n), p.abi())
	})
	return explained(err, "%v", p)
}

// SetHostNodeParams calls cuGraphHostNodeSetParams.
func (c *Context) SetHostNodeParams(n NodeHandle, p *HostParams) error {
	return call0(c, "cuGraphHostNodeSetParams", func(api driver.API) driver.CUresult {
		return api.CuGraphHostNodeSetParams(driver.CUgraphNode(n), p.abi())
	})
}
