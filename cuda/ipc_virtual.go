// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"os"
	"syscall"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A VirtualPiece is one of the physical allocations that virtual memory consists
// of, as a file descriptor which keeps it.
type VirtualPiece struct {
	FD   int
	Size uint64 // bytes
}

// A VirtualExport is what another process needs to import virtual memory. Unlike
// memory of a pool it needs no lease: the driver frees physical memory with the
// last mapping, handle and descriptor of all processes.
type VirtualExport struct {
	Pieces []VirtualPiece // adjacent
	Offset uint64         // of the memory in the pieces
	Size   uint64         // bytes of the memory
}

// IsShareable reports whether other processes can import the memory.
func (mr *VirtualMemoryResource) IsShareable() bool { return mr.prop.RequestedHandleTypes != 0 }

// share prepares for memory that other processes can import.
func (mr *VirtualMemoryResource) share() error {
	mr.prop.RequestedHandleTypes = int32(driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
	return mr.ctx.dev.need(HandleTypePOSIXFileDescriptorSupported, "cuMemCreate", "shares no virtual memory with other processes")
}

// export makes the descriptor of a piece, for as long as the piece is there: so
// sending memory opens nothing that could be left open.
//
// Preconditions: the context is current.
func (p *mappedPiece) export(c *Context) error {
	const op = "cuMemExportToShareableHandle"
	fd, r := c.drv.api.CuMemExportToShareableHandle(p.handle, driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)
	if r != driver.CUDA_SUCCESS {
		return c.fail(op, r, fmt.Sprintf("%d bytes that processes share: each time that memory is allocated or grows takes a file descriptor", p.size))
	}
	syscall.CloseOnExec(int(fd))
	p.file = os.NewFile(uintptr(fd), "cudago virtual memory")
	tellDescriptor(p.file, true)
	return nil
}

func (p *mappedPiece) closeFile() {
	if p.file != nil {
		tellDescriptor(p.file, false)
		_ = p.file.Close() // it is only closed here, and cannot fail
		p.file = nil
	}
}

// closeFiles closes the descriptors of pieces that are not released one by one.
func (v *virtualMemory) closeFiles() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.pieces {
		v.pieces[i].closeFile()
	}
}

// ExportVirtual returns what [Context.ImportVirtual] of another process imports
// size bytes at offset of b with. The descriptors remain the allocation's, which
// the caller holds as long as it uses them. What b grows by later is not among
// them.
//
// Errors: an [*ArgumentError] if b is not virtual memory for sharing, or is
// imported, or if the range is empty or not inside b; [ErrClosed].
func (b *Buffer) ExportVirtual(offset, size uint64) (VirtualExport, error) {
	if err := b.begin(); err != nil {
		return VirtualExport{}, err
	}
	defer b.a.release()
	switch have := b.Size(); {
	case b.a.virtual == nil:
		return VirtualExport{}, badValue("", "only memory that a virtual memory resource allocated is exported in pieces")
	case b.a.virtual.mr == nil:
		return VirtualExport{}, badValue("", "the memory is imported: only the process that allocated it can share it")
	case !b.a.virtual.mr.IsShareable():
		return VirtualExport{}, badValue("", "the virtual memory resource was not created for sharing with other processes")
	case size == 0 || offset > have || size > have-offset:
		return VirtualExport{}, badValue("", "range of %d bytes at offset %d is empty or not inside the buffer of %d bytes", size, offset, have)
	}
	return b.a.virtual.export(b.offset+offset, size), nil
}

// export returns the pieces with a range of the memory.
func (v *virtualMemory) export(offset, size uint64) VirtualExport {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := VirtualExport{Offset: offset, Size: size}
	var start uint64
	for _, p := range v.pieces[:v.kept.pieces] {
		switch end := start + p.size; {
		case end <= offset:
			e.Offset -= p.size
		case start < offset+size:
			e.Pieces = append(e.Pieces, VirtualPiece{FD: int(p.file.Fd()), Size: p.size})
		}
		start += p.size
	}
	return e
}

// ImportVirtual maps memory of another process into one range of addresses of this
// one, and returns a Buffer over what e is about. d has to be the same device, and
// is the only one that can access it. It leaves the descriptors to the caller. It
// calls cuMemAddressReserve, and for each piece cuMemImportFromShareableHandle,
// cuMemMap and cuMemSetAccess.
//
// The Buffer cannot grow, and shares its bytes with the other process also after
// that has closed its own. The last holder's release waits for s, unmaps the memory
// and releases it here; work in other streams must have completed.
//
// Errors: an [*ArgumentError] if e is not that of virtual memory; otherwise an
// [*Error].
func (c *Context) ImportVirtual(e VirtualExport, s *Stream) (*Buffer, error) {
	switch {
	case s == nil:
		return nil, badType("stream", "is required: imported memory is released when a stream has completed")
	case s.ctx != c:
		return nil, badValue("stream", "must be of %v, as the memory is, got one of %v", c.dev, s.ctx.dev)
	}
	total, err := e.total()
	if err != nil {
		return nil, err
	}
	c.Drain()
	v := &virtualMemory{}
	a := &allocation{ctx: c, kind: DeviceMemory, virtual: v, free: freeVirtual}
	if err := a.useStream(s); err != nil {
		return nil, err
	}
	if err := v.borrow(c, e.Pieces, total); err != nil {
		unuse(s)
		return nil, err
	}
	a.base = uint64(v.reserved[0].base)
	v.size.Store(e.Offset + e.Size)
	c.drv.live.allocations.Add(1)
	b := newBuffer(a)
	b.offset, b.size = e.Offset, e.Size
	return b, nil
}

// total is the size of all pieces, which must hold the memory.
func (e *VirtualExport) total() (sum uint64, err error) {
	for _, p := range e.Pieces {
		if p.Size == 0 || p.Size > maxVirtualSize-sum {
			return 0, badValue("descriptor", "has a piece of %d bytes behind %d others", p.Size, sum)
		}
		sum += p.Size
	}
	if e.Size == 0 || e.Offset > sum || e.Size > sum-e.Offset {
		return 0, badValue("descriptor", "has bytes %d to %d of %d", e.Offset, e.Offset+e.Size, sum)
	}
	return sum, nil
}

// borrow imports the pieces and maps them side by side, or leaves nothing behind.
func (v *virtualMemory) borrow(c *Context, pieces []VirtualPiece, total uint64) error {
	leave, err := c.enterRelaxed()
	if err != nil {
		return err
	}
	defer leave()
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.reserveAt(c, 0, total); err != nil {
		return err
	}
	base := v.reserved[0].base
	for _, p := range pieces {
		if err := v.borrowPiece(c, base, p); err != nil {
			if op, r := v.cut(c.drv.api, 0, 0); r != driver.CUDA_SUCCESS {
				c.drv.warn("imported memory", c.fail(op, r, ""))
			}
			return err
		}
		base += driver.CUdeviceptr(p.Size)
	}
	return nil
}

// borrowPiece imports one piece and maps it at base.
func (v *virtualMemory) borrowPiece(c *Context, base driver.CUdeviceptr, p VirtualPiece) error {
	h, r := c.drv.api.CuMemImportFromShareableHandle(int32(p.FD), driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
	if r != driver.CUDA_SUCCESS {
		return c.fail("cuMemImportFromShareableHandle", r,
			fmt.Sprintf("%d bytes that another process shares: is the file descriptor that of virtual memory?", p.Size))
	}
	return v.add(base, p.Size, h).show(c, []driver.CUmemAccessDesc{
		{Location: c.dev.location(), Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
	})
}
