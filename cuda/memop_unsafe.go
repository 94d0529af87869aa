// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A WaitCondition says how a wait compares memory with its value.
type WaitCondition uint32

// Conditions of waits. From cuda.h, CUDA 12.4.
const (
	WaitGreaterEqual WaitCondition = 0 // the difference is not negative: the comparison is cyclic
	WaitEqual        WaitCondition = 1
	WaitAnd          WaitCondition = 2 // a bit of the value is set
	WaitNor          WaitCondition = 3 // a bit is set in neither
)

// String returns ">=", "==", "&" or "nor".
func (c WaitCondition) String() string {
	if c <= WaitNor {
		return [...]string{">=", "==", "&", "nor"}[c]
	}
	return fmt.Sprintf("condition %d", uint32(c))
}

// MemOpParams says what a memory operation of a stream writes, or waits for, in
// Width bytes (4 or 8) at Ptr: device or pinned memory, aligned to Width.
type MemOpParams struct {
	Ptr       uint64
	Value     uint64
	Width     uint32
	IsWait    bool
	Condition WaitCondition // of a wait
}

// String returns "write 7 into 4 bytes at 0x10", or "wait for ...".
func (p *MemOpParams) String() string {
	if p.IsWait {
		return fmt.Sprintf("wait for %d bytes at %#x to be %v %d", p.Width, p.Ptr, p.Condition, p.Value)
	}
	return fmt.Sprintf("write %d into %d bytes at %#x", p.Value, p.Width, p.Ptr)
}

func (p *MemOpParams) check() error {
	switch {
	case p.Width != 4 && p.Width != 8:
		return badValue("width", "must be 4 or 8 bytes, got %d", p.Width)
	case p.Ptr%uint64(p.Width) != 0:
		return badValue("address", "must be a multiple of %d bytes, got %#x", p.Width, p.Ptr)
	case p.Width == 4 && p.Value>>32 != 0:
		return overflow("value", "must fit in 4 bytes, got %d", p.Value)
	case p.Condition > WaitNor:
		return badValue("condition", "must be one of >=, ==, & and nor, got %v", p.Condition)
	}
	return nil
}

// MemOp writes a value into memory, or makes what follows in s wait for one. A
// write comes after all earlier work in s. A wait holds a part of the device
// until another stream or the host has written a value that satisfies it. It
// calls cuStreamWriteValue32, cuStreamWriteValue64, cuStreamWaitValue32 or
// cuStreamWaitValue64.
//
// Stream-ordered on s; returns before completion. Captured as a batch mem op
// node. The caller must keep the memory alive until the work has completed.
//
// Errors: an [*ArgumentError] for a misaligned address, or a value or a width
// that does not fit; [ErrClosed]; otherwise an [*Error].
func MemOp(p MemOpParams, s *Stream) error {
	if err := p.check(); err != nil {
		return err
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	op, r := memOp(s.ctx.drv.api, &p, s.h)
	if r != driver.CUDA_SUCCESS {
		return s.ctx.fail(op, r, p.String())
	}
	return nil
}

func memOp(api driver.API, p *MemOpParams, s driver.CUstream) (string, driver.CUresult) {
	at, wide := driver.CUdeviceptr(p.Ptr), p.Width == 8
	switch {
	case p.IsWait && wide:
		return "cuStreamWaitValue64", api.CuStreamWaitValue64(s, at, p.Value, uint32(p.Condition))
	case p.IsWait:
		return "cuStreamWaitValue32", api.CuStreamWaitValue32(s, at, uint32(p.Value), uint32(p.Condition))
	case wide:
		return "cuStreamWriteValue64", api.CuStreamWriteValue64(s, at, p.Value, 0)
	}
	return "cuStreamWriteValue32", api.CuStreamWriteValue32(s, at, uint32(p.Value), 0)
}

func (p *MemOpParams) abi() driver.CUstreamBatchMemOpParams {
	a := driver.CUstreamBatchMemOpParams{Operation: driver.CU_STREAM_MEM_OP_WRITE_VALUE_32, Address: driver.CUdeviceptr(p.Ptr), Value: p.Value}
	switch {
	case p.IsWait && p.Width == 8:
		a.Operation = driver.CU_STREAM_MEM_OP_WAIT_VALUE_64
	case p.IsWait:
		a.Operation = driver.CU_STREAM_MEM_OP_WAIT_VALUE_32
	case p.Width == 8:
		a.Operation = driver.CU_STREAM_MEM_OP_WRITE_VALUE_64
	}
	if p.IsWait {
		a.Flags = uint32(p.Condition)
	}
	return a
}

// memOpNode runs call with the parameters of a node of one memory operation.
func (c *Context) memOpNode(p *MemOpParams, call func(*driver.CUDA_BATCH_MEM_OP_NODE_PARAMS) error) error {
	if err := p.check(); err != nil {
		return err
	}
	list := []driver.CUstreamBatchMemOpParams{p.abi()}
	var pinner runtime.Pinner // the parameters hold its address, which cgo may not see
	defer pinner.Unpin()
	pinner.Pin(&list[0])
	err := call(&driver.CUDA_BATCH_MEM_OP_NODE_PARAMS{Ctx: c.h, Count: 1, ParamArray: unsafe.Pointer(&list[0])})
	return explained(err, "%v", p)
}

// AddMemOpNode adds a node of one memory operation. It calls
// cuGraphAddBatchMemOpNode.
func (c *Context) AddMemOpNode(g GraphHandle, deps []NodeHandle, p *MemOpParams) (n NodeHandle, err error) {
	err = c.memOpNode(p, func(a *driver.CUDA_BATCH_MEM_OP_NODE_PARAMS) (err error) {
		n, err = callNode(c, "cuGraphAddBatchMemOpNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
			return api.CuGraphAddBatchMemOpNode(driver.CUgraph(g), toNodes(deps), a)
		})
		return err
	})
	return n, err
}

// SetMemOpNodeParams calls cuGraphBatchMemOpNodeSetParams.
func (c *Context) SetMemOpNodeParams(n NodeHandle, p *MemOpParams) error {
	return c.memOpNode(p, func(a *driver.CUDA_BATCH_MEM_OP_NODE_PARAMS) error {
		return call0(c, "cuGraphBatchMemOpNodeSetParams", func(api driver.API) driver.CUresult {
			return api.CuGraphBatchMemOpNodeSetParams(driver.CUgraphNode(n), a)
		})
	})
}

// ExecSetMemOpParams calls cuGraphExecBatchMemOpNodeSetParams.
func (c *Context) ExecSetMemOpParams(x ExecHandle, n NodeHandle, p *MemOpParams) error {
	return c.memOpNode(p, func(a *driver.CUDA_BATCH_MEM_OP_NODE_PARAMS) error {
		return call0(c, "cuGraphExecBatchMemOpNodeSetParams", func(api driver.API) driver.CUresult {
			return api.CuGraphExecBatchMemOpNodeSetParams(driver.CUgraphExec(x), driver.CUgraphNode(n), a)
		})
	})
}
