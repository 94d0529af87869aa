// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A MemoryKind says where memory is and who can access it.
type MemoryKind int

const (
	// DeviceMemory is on a device; the host cannot access it.
	DeviceMemory MemoryKind = iota
	// PinnedMemory is page-locked host memory that devices can access.
	PinnedMemory
	// UnifiedMemory is managed memory: it moves to whoever accesses it.
	UnifiedMemory
	// HostMemory is any other host memory. Devices can access it only if
	// [PageableMemoryAccess] is 1.
	HostMemory
)

// String returns "device", "pinned", "managed" or "host".
func (k MemoryKind) String() string {
	return [...]string{"device", "pinned", "managed", "host"}[k]
}

// HostAccessible reports whether the host can access memory of kind k.
func (k MemoryKind) HostAccessible() bool { return k != DeviceMemory }

// A Buffer is a range of bytes in an allocation. Buffers made by [Buffer.Slice]
// share the allocation.
//
// # Lifetime
//
// An allocation is freed when its last holder releases it. Each open Buffer is
// a holder, and so is each [Buffer.Retain] until its Release. Device memory is
// then freed in the order of its stream, after the work queued there before;
// the caller orders work in other streams. The stream's handle stays valid
// until then, even if the Stream is closed.
//
// # Concurrency
//
// Safe for concurrent use. Access to the bytes is not synchronized.
type Buffer struct {
	a      *allocation
	offset uint64 // bytes into the allocation
	size   uint64 // bytes, unless whole
	whole  bool   // the size is always that of the allocation, which may grow
	closed atomic.Bool
}

// allocation is memory with its holders.
type allocation struct {
	refs     refs
	ctx      *Context
	kind     MemoryKind
	base     uint64         // address of the first byte
	size     uint64         // bytes, unless virtual
	virtual  *virtualMemory // nil unless it can grow
	resource MemoryResource // nil if wrapped
	idle     atomic.Bool    // the work that used it has completed: see CloseIdle

	// free frees the memory. It runs once, after the last holder has let go, and
	// must end with a call of unuse.
	free func(a *allocation, s *Stream)

	mu     sync.Mutex
	stream *Stream // guarded by mu; in use until freed; nil if there is none
}

// BufferInfo describes memory for [Context.WrapBuffer].
type BufferInfo struct {
	Ptr  uint64 // address
	Size uint64 // bytes
	Kind MemoryKind
	// Release is called once, by the last holder, on any goroutine. It may be
	// nil.
	Release func()
}

// WrapBuffer returns a Buffer over memory that someone else allocated. The
// memory must stay valid until o.Release is called.
func (c *Context) WrapBuffer(o BufferInfo) *Buffer {
	return newBuffer(&allocation{ctx: c, kind: o.Kind, base: o.Ptr, size: o.Size, free: func(_ *allocation, s *Stream) {
		if o.Release != nil {
			o.Release()
		}
		unuse(s)
	}})
}

// newBuffer returns the first holder of a.
func newBuffer(a *allocation) *Buffer {
	a.refs.init()
	return &Buffer{a: a, size: a.size}
}

// useStream makes s the stream on which a is freed and keeps its handle valid.
func (a *allocation) useStream(s *Stream) error {
	if s == nil {
		return nil
	}
	if err := s.begin(); err != nil {
		return err
	}
	a.mu.Lock()
	old := a.stream
	a.stream = s
	a.mu.Unlock()
	if old != nil {
		old.end()
	}
	return nil
}

// bytes returns the size.
func (a *allocation) bytes() uint64 {
	if a.virtual != nil {
		return a.virtual.size.Load()
	}
	return a.size
}

func (a *allocation) release() {
	if !a.refs.release() {
		return
	}
	a.mu.Lock()
	s := a.stream
	a.mu.Unlock()
	a.free(a, s)
}

// unuse ends the use of the stream that a was freed on.
func unuse(s *Stream) {
	if s != nil {
		s.end()
	}
}

// Ptr returns the address of the first byte. It is valid as long as the
// allocation has a holder.
func (b *Buffer) Ptr() uint64 { return b.a.base + b.offset }

// Size returns the size in bytes.
func (b *Buffer) Size() uint64 {
	if b.whole {
		return b.a.bytes()
	}
	return b.size
}

// Kind returns where the memory is.
func (b *Buffer) Kind() MemoryKind { return b.a.kind }

// Device returns the device that the memory is on, or through which host memory
// was allocated.
func (b *Buffer) Device() *Device { return b.a.ctx.dev }

// Context returns the context that the memory belongs to.
func (b *Buffer) Context() *Context { return b.a.ctx }

// Resource returns what allocated the memory, or nil if it was wrapped.
func (b *Buffer) Resource() MemoryResource { return b.a.resource }

// Allocation returns the address and the size in bytes of the whole allocation.
func (b *Buffer) Allocation() (ptr, size uint64) { return b.a.base, b.a.bytes() }

// SameAllocation reports whether b and other share their allocation.
func (b *Buffer) SameAllocation(other *Buffer) bool { return b.a == other.a }

// Stream returns the stream in whose order the memory will be freed, or nil.
func (b *Buffer) Stream() *Stream {
	b.a.mu.Lock()
	defer b.a.mu.Unlock()
	return b.a.stream
}

// SetStream makes s the stream in whose order the memory will be freed. The
// caller orders work in the old stream before s.
//
// Errors: [ErrClosed] if b or s is closed.
func (b *Buffer) SetStream(s *Stream) error {
	if err := b.begin(); err != nil {
		return err
	}
	defer b.a.release()
	return b.a.useStream(s)
}

// String returns "buffer of 4096 bytes at 0x7f0000000000 on device 0".
func (b *Buffer) String() string {
	return fmt.Sprintf("buffer of %d bytes at %#x on %v", b.Size(), b.Ptr(), b.a.ctx.dev)
}

// Retain adds a holder of the allocation. b itself may be closed, but the
// allocation must still have another holder.
//
// Errors: [ErrClosed] if the memory has already been freed; then there is
// nothing to release.
func (b *Buffer) Retain() error {
	if b.IsLost() {
		return b.a.ctx.lostError(b.String())
	}
	if !b.a.refs.retain() {
		return &ClosedError{b.String()}
	}
	return nil
}

// Release undoes one Retain. The last holder frees the memory.
func (b *Buffer) Release() { b.a.release() }

// begin makes the caller a holder for the length of a call.
func (b *Buffer) begin() error {
	if b.IsLost() {
		return b.a.ctx.lostError(b.String())
	}
	if b.closed.Load() || !b.a.refs.retain() {
		return &ClosedError{b.String()}
	}
	return nil
}

// IsLost reports whether the memory was lost in a reset of its device. Host
// memory that others allocated is not lost.
func (b *Buffer) IsLost() bool { return b.a.kind != HostMemory && b.a.ctx.IsLost() }

// Slice returns a Buffer over size bytes from offset on. It is a holder of its
// own and needs its own Close.
//
// Errors: [ErrClosed]; an [*ArgumentError] if the range is not inside b.
func (b *Buffer) Slice(offset, size uint64) (*Buffer, error) {
	if have := b.Size(); offset > have || size > have-offset {
		return nil, badValue("", "range of %d bytes at offset %d is not inside the buffer of %d bytes", size, offset, have)
	}
	if err := b.begin(); err != nil {
		return nil, err
	}
	return &Buffer{a: b.a, offset: b.offset + offset, size: size}, nil
}

// IsClosed reports whether Close was called on b.
func (b *Buffer) IsClosed() bool { return b.closed.Load() }

// Close ends this holder. Closing twice is fine. The last holder frees the
// memory: device memory by cuMemFreeAsync on its stream, which does not block;
// pinned, managed and virtual memory after waiting for its stream, if it has
// one.
func (b *Buffer) Close() error {
	if !b.closed.Swap(true) {
		b.a.release()
	}
	return nil
}

// CloseIdle is Close for a caller that knows that all work using the memory has
// completed: virtual memory is then unmapped without waiting for its stream.
func (b *Buffer) CloseIdle() error {
	b.a.idle.Store(true)
	return b.Close()
}

// CloseOn is SetStream and Close in one.
func (b *Buffer) CloseOn(s *Stream) error {
	if b.closed.Load() {
		return nil
	}
	if err := b.SetStream(s); err != nil {
		return err
	}
	return b.Close()
}

// CopyFrom copies src into b. Both must have the same size. It calls
// cuMemcpyAsync; or if s is of another device than one of them, and not
// capturing, cuMemcpyPeerAsync, which needs no access.
//
// Stream-ordered on s; returns before completion. Captured as a memcpy node.
// The caller must keep src open until the copy has completed; if s is
// capturing, until the last graph with the node is gone.
//
// Errors: [ErrClosed]; an [*ArgumentError] if the sizes differ; an [*Error].
func (b *Buffer) CopyFrom(src *Buffer, s *Stream) error {
	size := b.Size()
	if src.Size() != size {
		return badValue("src", "must have %d bytes, as the destination has, got %d", size, src.Size())
	}
	if err := src.begin(); err != nil {
		return err
	}
	defer src.a.release()
	if err := b.begin(); err != nil {
		return err
	}
	defer b.a.release()
	if b.isElsewhere(src, s) {
		switch capturing, err := s.IsCapturing(); {
		case err != nil:
			return err
		case capturing == CaptureNone:
			return MemcpyPeer(b.Ptr(), b.a.ctx, src.Ptr(), src.a.ctx, size, s)
		}
	}
	return Memcpy(b.Ptr(), src.Ptr(), size, s)
}

// isElsewhere reports whether b and src are memory of devices, one of which is
// not that of s.
func (b *Buffer) isElsewhere(src *Buffer, s *Stream) bool {
	device := b.Kind() == DeviceMemory && src.Kind() == DeviceMemory
	return device && (b.a.ctx != s.ctx || src.a.ctx != s.ctx)
}

// CopyTo copies b into dst; it is dst.CopyFrom(b, s).
func (b *Buffer) CopyTo(dst *Buffer, s *Stream) error {
	if dst.Size() != b.Size() {
		return badValue("dst", "must have %d bytes, as the source has, got %d", b.Size(), dst.Size())
	}
	return dst.CopyFrom(b, s)
}

// Fill sets all elements of elementSize bytes (1, 2 or 4) to value.
//
// Stream-ordered on s; returns before completion. Captured as a memset node.
//
// Errors: [ErrClosed]; an [*ArgumentError] if b is not a whole number of
// elements or value does not fit into one; an [*Error].
func (b *Buffer) Fill(value uint32, elementSize int, s *Stream) error {
	size := b.Size()
	if elementSize > 0 && size%uint64(elementSize) != 0 {
		return badValue("", "buffer of %d bytes is not a whole number of %d-byte elements", size, elementSize)
	}
	if err := b.begin(); err != nil {
		return err
	}
	defer b.a.release()
	return Memset(b.Ptr(), value, elementSize, size/uint64(max(elementSize, 1)), s)
}

// Memcpy copies size bytes between any two addresses that the driver knows or,
// on the host's side, pageable memory. It calls cuMemcpyAsync.
//
// Stream-ordered on s; returns before completion unless a side is pageable.
// Captured as a memcpy node. The caller must keep both sides alive until the
// copy has completed.
//
// Errors: also an [*ArgumentError] if the ranges overlap, and are not the same.
func Memcpy(dst, src, size uint64, s *Stream) error {
	if size == 0 {
		return s.check()
	}
	if err := apart(dst, src, size); err != nil {
		return err
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	r := s.ctx.drv.api.CuMemcpyAsync(driver.CUdeviceptr(dst), driver.CUdeviceptr(src), size, s.h)
	if r != driver.CUDA_SUCCESS {
		return s.ctx.fail("cuMemcpyAsync", r, fmt.Sprintf("%d bytes from %#x to %#x", size, src, dst))
	}
	return nil
}

// MemcpyPeer copies size bytes between memory of two devices, each of which is
// the device of its context, whatever access they have to each other's memory.
// It calls cuMemcpyPeerAsync.
//
// Stream-ordered on s, of either device; returns before completion. It cannot be
// captured: the caller must know that s is not capturing. The caller must keep
// both sides alive until the copy has completed.
func MemcpyPeer(dst uint64, to *Context, src uint64, from *Context, size uint64, s *Stream) error {
	if size == 0 {
		return s.check()
	}
	for _, c := range []*Context{to, from} {
		if err := c.hold(); err != nil {
			return err
		}
		defer c.release()
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	r := s.ctx.drv.api.CuMemcpyPeerAsync(driver.CUdeviceptr(dst), to.h, driver.CUdeviceptr(src), from.h, size, s.h)
	if r != driver.CUDA_SUCCESS {
		return s.ctx.fail("cuMemcpyPeerAsync", r, fmt.Sprintf("%d bytes from %#x on %v to %#x on %v", size, src, from.dev, dst, to.dev))
	}
	return nil
}

// Memcpy3D copies rows of bytes, as a memcpy node does. It calls
// cuMemcpy3DAsync.
//
// Stream-ordered on s; returns before completion unless a side is pageable.
// Captured as a memcpy node. The caller must keep both sides alive until the
// copy has completed.
//
// Errors: also an [*ArgumentError] if rows are known to overlap.
func Memcpy3D(p MemcpyParams, s *Stream) error {
	if p.Size == 0 {
		return s.check()
	}
	if err := p.apart(); err != nil {
		return err
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	r := s.ctx.drv.api.CuMemcpy3DAsync(p.abi(), s.h)
	if r != driver.CUDA_SUCCESS {
		return s.ctx.fail("cuMemcpy3DAsync", r, fmt.Sprintf("%d rows, %d bytes in all, from %#x to %#x", p.Box.Rows*p.Box.Slices, p.Size, p.Src, p.Dst))
	}
	return nil
}

// Memset sets count elements of elementSize bytes (1, 2 or 4) at dst to value.
// It calls cuMemsetD8Async, cuMemsetD16Async or cuMemsetD32Async.
//
// Stream-ordered on s; returns before completion. Captured as a memset node.
func Memset(dst uint64, value uint32, elementSize int, count uint64, s *Stream) error {
	if elementSize != 1 && elementSize != 2 && elementSize != 4 {
		return badValue("element size", "must be 1, 2 or 4 bytes, got %d", elementSize)
	}
	if elementSize < 4 && value>>(8*elementSize) != 0 {
		return overflow("value", "must fit in %d bytes, got %d", elementSize, value)
	}
	if count == 0 {
		return s.check()
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	op, r := memset(s.ctx.drv.api, driver.CUdeviceptr(dst), value, elementSize, count, s.h)
	if r != driver.CUDA_SUCCESS {
		return s.ctx.fail(op, r, fmt.Sprintf("%d elements of %d bytes at %#x", count, elementSize, dst))
	}
	return nil
}

func memset(api driver.API, dst driver.CUdeviceptr, value uint32, elementSize int, count uint64, s driver.CUstream) (string, driver.CUresult) {
	switch elementSize {
	case 1:
		return "cuMemsetD8Async", api.CuMemsetD8Async(dst, uint8(value), count, s)
	case 2:
		return "cuMemsetD16Async", api.CuMemsetD16Async(dst, uint16(value), count, s)
	}
	return "cuMemsetD32Async", api.CuMemsetD32Async(dst, value, count, s)
}

// check returns [ErrClosed] after Close: for calls that have nothing to do.
func (s *Stream) check() error {
	if s.ctx.IsLost() {
		return s.ctx.lostError(s.String())
	}
	if s.IsClosed() {
		return &ClosedError{s.String()}
	}
	return nil
}
