// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// fillWork writes one value into the rows of a rectangle.
type fillWork struct {
	params   driver.CUDA_MEMSET_NODE_PARAMS
	ctx      *context
	dst      operand
	captured bool
}

// newFillNode checks the parameters of a fill that is a node: of what it must
// not reach.
func (d *simulator) newFillNode(p *driver.CUDA_MEMSET_NODE_PARAMS, c *context) (*fillWork, driver.CUresult) {
	w, r := d.newFillWork(p, c)
	if r == driver.CUDA_SUCCESS && c.dev.memory.Shut(w.dst.addr) {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	return w, r
}

// newFillWork checks the parameters of a fill.
func (d *simulator) newFillWork(p *driver.CUDA_MEMSET_NODE_PARAMS, c *context) (*fillWork, driver.CUresult) {
	if p == nil || p.Width == 0 || p.Height == 0 {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	switch p.ElementSize {
	case 1, 2, 4:
	default:
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	row := p.Width * uint64(p.ElementSize)
	if uint64(p.Dst)%uint64(p.ElementSize) != 0 || row/uint64(p.ElementSize) != p.Width || p.Height > 1 && p.Pitch < row {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	w := &fillWork{params: *p, ctx: c}
	var r driver.CUresult
	w.dst, r = d.operand(uint64(p.Dst), (p.Height-1)*p.Pitch+row)
	if r == driver.CUDA_SUCCESS && w.dst.pageable() {
		r = driver.CUDA_ERROR_INVALID_VALUE
	}
	return w, r
}

// isDenied reports whether the memory is a peer's to which there is no access.
// NVIDIA's driver (580.159) refuses that in streams, and what was captured of it
// when the graph is instantiated; a node that was added may fill what cuMemAlloc
// gave.
func (w *fillWork) isDenied() bool { return w.ctx.dev.memory.Denied(w.dst.addr) != "" }

func (w *fillWork) run(x *execution) *failure {
	p := &w.params
	if row := p.Width * uint64(p.ElementSize); x.touches() {
		x.touch(fmt.Sprintf("a fill of %d bytes", row*p.Height), &w.dst, nil, layout{pitch: p.Pitch}, layout{}, row, p.Height, 1)
	}
	return use(x, func(p [2]unsafe.Pointer) {
		for y := range w.params.Height {
			fill(unsafe.Add(p[0], y*w.params.Pitch), w.params.Value, w.params.ElementSize, w.params.Width)
		}
	}, &w.dst)
}

func (d *simulator) memset(dst driver.CUdeviceptr, value uint32, elementSize uint32, n uint64, h driver.CUstream) driver.CUresult {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS || n == 0 {
		return r
	}
	w, r := d.newFillWork(&driver.CUDA_MEMSET_NODE_PARAMS{
		Dst: dst, Value: value, ElementSize: elementSize, Width: n, Height: 1,
	}, s.ctx)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	w.captured = s.capture.Load() != nil
	if !w.captured && (w.dst.isReserved() || w.isDenied()) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	return d.submit(s, w, driver.CU_GRAPH_NODE_TYPE_MEMSET)
}

func (d *simulator) CuMemsetD8Async(dst driver.CUdeviceptr, value uint8, n uint64, s driver.CUstream) driver.CUresult {
	return d.memset(dst, uint32(value), 1, n, s)
}

func (d *simulator) CuMemsetD16Async(dst driver.CUdeviceptr, value uint16, n uint64, s driver.CUstream) driver.CUresult {
	return d.memset(dst, uint32(value), 2, n, s)
}

func (d *simulator) CuMemsetD32Async(dst driver.CUdeviceptr, value uint32, n uint64, s driver.CUstream) driver.CUresult {
	return d.memset(dst, value, 4, n, s)
}
