// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// stagedLimit is the largest copy from pageable memory that is staged at the
// call; larger ones block instead. From "API synchronization behavior" in the
// CUDA driver API reference.
const stagedLimit = 64 << 10

// copyWork copies a box of bytes. It reads its source when it runs, each time.
type copyWork struct {
	params   driver.CUDA_MEMCPY3D
	ctx      *context
	dst, src operand
	arrays   [2]*array // of dst and src; nil where there is none
}

// newCopyWork checks the parameters of a copy.
func (d *simulator) newCopyWork(p *driver.CUDA_MEMCPY3D, c *context) (*copyWork, driver.CUresult) {
	w, r := d.newPeerCopyWork(p, c)
	if r == driver.CUDA_SUCCESS && (c.dev.memory.Shut(w.src.addr) || c.dev.memory.Shut(w.dst.addr)) {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	return w, r
}

// newPeerCopyWork is newCopyWork for memory of all devices.
func (d *simulator) newPeerCopyWork(p *driver.CUDA_MEMCPY3D, c *context) (*copyWork, driver.CUresult) {
	if p == nil || p.WidthInBytes == 0 || p.Height == 0 || p.Depth == 0 {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	w := &copyWork{params: *p, ctx: c}
	for i, isArray := range []bool{p.DstMemoryType == driver.CU_MEMORYTYPE_ARRAY, p.SrcMemoryType == driver.CU_MEMORYTYPE_ARRAY} {
		if !isArray {
			continue
		}
		if w.arrays[i] = d.arrays.get([]driver.CUarray{p.DstArray, p.SrcArray}[i]); !w.inArray(i) {
			return nil, driver.CUDA_ERROR_INVALID_VALUE
		}
	}
	src, dst := w.source(), w.destination()
	if src.slice < src.pitch*p.Height || dst.slice < dst.pitch*p.Height { // even of a single slice
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	var r driver.CUresult
	if w.src, r = d.side(&src, p, p.SrcMemoryType, p.SrcHost, p.SrcDevice, w.arrays[1]); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if w.dst, r = d.side(&dst, p, p.DstMemoryType, p.DstHost, p.DstDevice, w.arrays[0]); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	return w, r
}

// layout is where the rows of one side of a copy lie.
type layout struct {
	offset uint64 // of the first byte from the side's address
	pitch  uint64 // from one row to the next
	slice  uint64 // from one slice to the next
}

func newLayout(p *driver.CUDA_MEMCPY3D, x, y, z, pitch, height uint64) layout {
	if pitch == 0 {
		pitch = x + p.WidthInBytes
	}
	if height == 0 {
		height = y + p.Height
	}
	return layout{offset: (z*height+y)*pitch + x, pitch: pitch, slice: pitch * height}
}

func (w *copyWork) source() layout {
	p := &w.params
	if a := w.arrays[1]; a != nil {
		return newLayout(p, p.SrcXInBytes, p.SrcY, p.SrcZ, a.texels.Pitch, a.texels.Height)
	}
	return newLayout(p, p.SrcXInBytes, p.SrcY, p.SrcZ, p.SrcPitch, p.SrcHeight)
}

func (w *copyWork) destination() layout {
	p := &w.params
	if a := w.arrays[0]; a != nil {
		return newLayout(p, p.DstXInBytes, p.DstY, p.DstZ, a.texels.Pitch, a.texels.Height)
	}
	return newLayout(p, p.DstXInBytes, p.DstY, p.DstZ, p.DstPitch, p.DstHeight)
}

// inArray reports whether the box of one side lies inside its array, in whole
// elements.
func (w *copyWork) inArray(side int) bool {
	p, a := &w.params, w.arrays[side]
	at := [3]uint64{p.DstXInBytes, p.DstY, p.DstZ}
	if side == 1 {
		at = [3]uint64{p.SrcXInBytes, p.SrcY, p.SrcZ}
	}
	if a == nil || at[0]%a.texels.Size() != 0 || p.WidthInBytes%a.texels.Size() != 0 {
		return false
	}
	inside := func(from, n, size uint64) bool { return from <= size && n <= size-from }
	return inside(at[0], p.WidthInBytes, a.texels.Pitch) && inside(at[1], p.Height, a.texels.Height) && inside(at[2], p.Depth, a.texels.Depth)
}

// side finds the memory of one side: the span from its first byte to its last.
func (d *simulator) side(
	l *layout, p *driver.CUDA_MEMCPY3D, kind driver.CUmemorytype, host uintptr, device driver.CUdeviceptr, of *array,
) (operand, driver.CUresult) {
	addr := uint64(device)
	switch kind {
	case driver.CU_MEMORYTYPE_ARRAY:
		addr = of.texels.Memory
	case driver.CU_MEMORYTYPE_HOST:
		addr = uint64(host)
	case driver.CU_MEMORYTYPE_DEVICE, driver.CU_MEMORYTYPE_UNIFIED:
	default:
		return operand{}, driver.CUDA_ERROR_INVALID_VALUE
	}
	if p.Height > 1 && l.pitch < p.WidthInBytes {
		return operand{}, driver.CUDA_ERROR_INVALID_VALUE
	}
	span := (p.Depth-1)*l.slice + (p.Height-1)*l.pitch + p.WidthInBytes
	o, r := d.operand(addr+l.offset, span)
	o.array = of != nil
	if kind == driver.CU_MEMORYTYPE_DEVICE && o.pageable() {
		return o, driver.CUDA_ERROR_INVALID_VALUE
	}
	return o, r
}

func (w *copyWork) run(x *execution) *failure {
	p := &w.params
	if x.touches() {
		x.touch(fmt.Sprintf("a copy of %d bytes", p.WidthInBytes*p.Height*p.Depth), &w.dst, &w.src, w.destination(), w.source(),
			p.WidthInBytes, p.Height, p.Depth)
	}
	return use(x, func(p [2]unsafe.Pointer) {
		src, dst := w.source(), w.destination()
		for z := range w.params.Depth {
			for y := range w.params.Height {
				move(unsafe.Add(p[0], z*dst.slice+y*dst.pitch), unsafe.Add(p[1], z*src.slice+y*src.pitch), w.params.WidthInBytes)
			}
		}
	}, &w.dst, &w.src)
}

// linear reports whether the copy is one run of bytes.
func (w *copyWork) linear() bool { return w.params.Height == 1 && w.params.Depth == 1 }

// stagedWork copies staged bytes.
type stagedWork struct {
	dst  operand
	data []byte
}

func (w *stagedWork) run(x *execution) *failure {
	if x.touches() {
		x.touch(fmt.Sprintf("a copy of %d bytes", len(w.data)), &w.dst, nil, layout{}, layout{}, uint64(len(w.data)), 1, 1)
	}
	return use(x, func(p [2]unsafe.Pointer) {
		move(p[0], unsafe.Pointer(unsafe.SliceData(w.data)), uint64(len(w.data)))
	}, &w.dst)
}

// CuMemcpyAsync copies size bytes. A copy from pageable memory has read its
// source when it returns, and one to pageable memory has ended.
func (d *simulator) CuMemcpyAsync(dst, src driver.CUdeviceptr, size uint64, h driver.CUstream) driver.CUresult {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS || size == 0 {
		return r
	}
	w, r := d.newCopyWork(linearCopy(dst, src, size), s.ctx)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if captured, r := d.captureWork(s, w, driver.CU_GRAPH_NODE_TYPE_MEMCPY); captured {
		return r
	}
	if r := d.refuseReserved(w, "cuMemcpyAsync"); r != driver.CUDA_SUCCESS {
		return r
	}
	d.behindGraphs()
	s.awaitRoom(false)
	if w.src.pageable() && !w.dst.pageable() && size <= stagedLimit {
		data, f := stage(w.src.addr, size)
		if f != nil {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
		s.enqueue(&stagedWork{w.dst, data})
		return driver.CUDA_SUCCESS
	}
	return d.copy(s, w)
}

func linearCopy(dst, src driver.CUdeviceptr, size uint64) *driver.CUDA_MEMCPY3D {
	return &driver.CUDA_MEMCPY3D{
		SrcMemoryType: driver.CU_MEMORYTYPE_UNIFIED, SrcDevice: src,
		DstMemoryType: driver.CU_MEMORYTYPE_UNIFIED, DstDevice: dst,
		WidthInBytes: size, Height: 1, Depth: 1,
	}
}

// CuMemcpyPeerAsync copies size bytes between devices. Not in a capture, as seen
// on two H100 (580.159).
func (d *simulator) CuMemcpyPeerAsync(
	dst driver.CUdeviceptr, dstCtx driver.CUcontext, src driver.CUdeviceptr, srcCtx driver.CUcontext, size uint64, h driver.CUstream,
) driver.CUresult {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if d.contexts.get(dstCtx) == nil || d.contexts.get(srcCtx) == nil {
		return driver.CUDA_ERROR_INVALID_CONTEXT
	}
	if r := d.refuseCapturing(s); r != driver.CUDA_SUCCESS || size == 0 {
		return r
	}
	w, r := d.newPeerCopyWork(linearCopy(dst, src, size), s.ctx)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.refuseReserved(w, "cuMemcpyPeerAsync"); r != driver.CUDA_SUCCESS {
		return r
	}
	d.behindGraphs()
	s.awaitRoom(false)
	return d.copy(s, w)
}

// copy enqueues a copy, and waits for its end if one side is pageable.
func (d *simulator) copy(s *stream, w *copyWork) driver.CUresult {
	end := s.enqueue(w)
	if !w.src.pageable() && !w.dst.pageable() {
		return driver.CUDA_SUCCESS
	}
	end.wait()
	d.waited(end)
	return s.ctx.result()
}

// CuMemcpy3DAsync copies a box of bytes. With pageable memory on one side it has
// ended when it returns.
func (d *simulator) CuMemcpy3DAsync(params *driver.CUDA_MEMCPY3D, h driver.CUstream) driver.CUresult {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	w, r := d.newCopyWork(params, s.ctx)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if captured, r := d.captureWork(s, w, driver.CU_GRAPH_NODE_TYPE_MEMCPY); captured {
		return r
	}
	if r := d.refuseReserved(w, "cuMemcpy3DAsync"); r != driver.CUDA_SUCCESS {
		return r
	}
	d.behindGraphs()
	s.awaitRoom(false)
	return d.copy(s, w)
}

// refuseReserved ends the process, as NVIDIA's driver does (580.159).
func (d *simulator) refuseReserved(w *copyWork, call string) driver.CUresult {
	if !w.src.isReserved() && !w.dst.isReserved() {
		return driver.CUDA_SUCCESS
	}
	d.die(call + " was called with memory of a graph that is not allocated now")
	return driver.CUDA_ERROR_INVALID_VALUE
}
