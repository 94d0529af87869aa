// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"runtime"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// Bytes returns the bytes of pinned, managed or host memory, without a copy.
// The slice must not be used after the memory was freed, while device work may
// write to it, or after a reset of its device. It is nil for device memory, and
// for empty and lost buffers.
func (b *Buffer) Bytes() []byte {
	if !b.a.kind.HostAccessible() || b.size == 0 || b.IsLost() {
		return nil
	}
	// The address is not Go's, so it does not matter to the garbage collector
	// that it was an integer; vet accepts a conversion through a pointer to it.
	ptr := b.Ptr()
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&ptr)), b.size)
}

// CopyFromHost copies src into b, which must have the same size, and blocks
// until it is done. It calls cuMemcpyAsync and cuStreamSynchronize. Not allowed
// while s is capturing: nothing would keep src alive.
func (b *Buffer) CopyFromHost(src []byte, s *Stream) error {
	return b.copyHost("src", src, s, func(host uint64) error { return Memcpy(b.Ptr(), host, uint64(len(src)), s) })
}

// CopyToHost copies b into dst, which must have the same size, and blocks until
// it is done. It calls cuMemcpyAsync and cuStreamSynchronize. Not allowed while
// s is capturing: nothing would keep dst alive.
func (b *Buffer) CopyToHost(dst []byte, s *Stream) error {
	return b.copyHost("dst", dst, s, func(host uint64) error { return Memcpy(host, b.Ptr(), uint64(len(dst)), s) })
}

func (b *Buffer) copyHost(arg string, host []byte, s *Stream, enqueue func(host uint64) error) error {
	size := b.Size()
	if uint64(len(host)) != size {
		return badValue(arg, "must have %d bytes, as the buffer has, got %d", size, len(host))
	}
	if err := b.begin(); err != nil {
		return err
	}
	defer b.a.release()
	status, err := s.IsCapturing()
	if err != nil {
		return err
	}
	if status != CaptureNone {
		return s.ctx.fail("cuMemcpyAsync", driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a copy of Go memory; use a pinned buffer")
	}
	if len(host) == 0 {
		return nil
	}
	// The driver holds the address across calls: until the copy has completed.
	var pin runtime.Pinner
	pin.Pin(&host[0])
	defer pin.Unpin()
	p := uintptr(unsafe.Pointer(&host[0]))
	s.ctx.drv.AllowHost(p, size, false)
	defer s.ctx.drv.DisallowHost(p, size, false)
	if err := enqueue(uint64(p)); err != nil {
		return err
	}
	return s.Synchronize()
}
