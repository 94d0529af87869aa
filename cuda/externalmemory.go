// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// ExternalMemory is memory of another API, such as Vulkan, which buffers can be
// mapped over.
//
// # Lifetime
//
// Close it when done; buffers over it keep it. Safe for concurrent use.
type ExternalMemory struct {
	ctx  *Context
	h    driver.CUexternalMemory // immutable
	size uint64                  // immutable
	uses uses
}

// ImportMemory imports size bytes of memory that the descriptor is of, which the
// other API allocated for one resource if dedicated says so. The descriptor
// remains the caller's. It calls cuImportExternalMemory.
//
// Lifetime: the caller must Close it.
//
// Errors: an [*ArgumentError] if fd is not open or there are no bytes; an
// [*Error] if the driver imports no such thing.
func (c *Context) ImportMemory(fd int, size uint64, dedicated bool) (*ExternalMemory, error) {
	if size == 0 {
		return nil, badValue("size", "must be at least 1 byte, got 0")
	}
	own, err := given(fd)
	if err != nil {
		return nil, err
	}
	desc := &driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC{Type: driver.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, Fd: int32(own), Size: size}
	if dedicated {
		desc.Flags = driver.CUDA_EXTERNAL_MEMORY_DEDICATED
	}
	detail := fmt.Sprintf("file descriptor %d as memory of %d bytes", fd, size)
	if c.drv.Name() == "sim" {
		detail += "; the simulated driver knows files in memory that have as many and cannot become smaller, as cudago.sim.create_memory " +
			"makes them, and os.memfd_create with MFD_ALLOW_SEALING"
	}
	h, err := importWith(c, own, "cuImportExternalMemory", detail, func(api driver.API) (driver.CUexternalMemory, driver.CUresult) {
		return api.CuImportExternalMemory(desc)
	})
	if err != nil {
		return nil, err
	}
	c.drv.live.externals.Add(1)
	return &ExternalMemory{ctx: c, h: h, size: size}, nil
}

// Size returns how many bytes were imported.
func (m *ExternalMemory) Size() uint64 { return m.size }

// Context returns the context that m was imported into.
func (m *ExternalMemory) Context() *Context { return m.ctx }

// String returns "external memory of 4096 bytes".
func (m *ExternalMemory) String() string { return fmt.Sprintf("external memory of %d bytes", m.size) }

// Map returns a Buffer over a part of m, which it keeps. It calls
// cuExternalMemoryGetMappedBuffer.
//
// Lifetime: the caller must Close the Buffer. The last holder waits for s, if that
// is not nil, and calls cuMemFree; work in other streams must have completed.
//
// Errors: an [*ArgumentError] if the part is empty or not inside m; [ErrClosed];
// otherwise an [*Error].
func (m *ExternalMemory) Map(offset, size uint64, s *Stream) (*Buffer, error) {
	switch {
	case offset > m.size || size > m.size-offset:
		return nil, badValue("", "range of %d bytes at offset %d is not inside the external memory of %d bytes", size, offset, m.size)
	case size == 0:
		return nil, badValue("size", "must be at least 1 byte, got 0")
	case s != nil && s.ctx != m.ctx:
		return nil, badValue("stream", "must be of %v, as the memory is, got one of %v", m.ctx.dev, s.ctx.dev)
	case m.ctx.IsLost():
		return nil, m.ctx.lostError(m.String())
	case !m.uses.begin():
		return nil, &ClosedError{m.String()}
	}
	const op = "cuExternalMemoryGetMappedBuffer"
	a := &allocation{ctx: m.ctx, kind: DeviceMemory, size: size}
	if err := a.useStream(s); err != nil {
		m.end()
		return nil, err
	}
	p, err := call1(m.ctx, op, func(api driver.API) (driver.CUdeviceptr, driver.CUresult) {
		defer m.ctx.drv.relax()()
		return api.CuExternalMemoryGetMappedBuffer(m.h, &driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC{Offset: offset, Size: size})
	})
	if err != nil {
		unuse(s)
		m.end()
		detail := fmt.Sprintf("%d bytes at offset %d of %d", size, offset, m.size)
		if m.ctx.drv.Name() == "sim" {
			detail += "; the simulated driver maps from multiples of 4096"
		}
		return nil, explained(err, "%s", detail)
	}
	a.base = uint64(p)
	a.free = m.unmap
	m.ctx.drv.live.allocations.Add(1)
	return newBuffer(a), nil
}

// unmap frees a mapping, and then lets go of m: in that order, says cuda.h.
func (m *ExternalMemory) unmap(a *allocation, s *Stream) {
	on := s.OnAnyThread()
	a.ctx.disposeSteps(a.what(), nil, &a.ctx.drv.live.allocations, func(api driver.API) (string, driver.CUresult) {
		if r := a.unused(on); r != driver.CUDA_SUCCESS {
			return "cuStreamQuery", r
		}
		return "cuMemFree", api.CuMemFree(driver.CUdeviceptr(a.base))
	}, func() {
		unuse(s)
		m.end()
	})
}

func (m *ExternalMemory) end() {
	if m.uses.end() {
		m.destroy()
	}
}

// IsClosed reports whether Close was called.
func (m *ExternalMemory) IsClosed() bool { return m.uses.closed() }

// Close ends the use of m. Closing twice is fine. It calls
// cuDestroyExternalMemory unless buffers over it are left; then the last does.
func (m *ExternalMemory) Close() error {
	if m.uses.close() {
		m.destroy()
	}
	return nil
}

func (m *ExternalMemory) destroy() {
	c := m.ctx
	c.dispose("cuDestroyExternalMemory", m.String(), nil, &c.drv.live.externals, func(api driver.API) driver.CUresult {
		return api.CuDestroyExternalMemory(m.h)
	}, nil)
}
