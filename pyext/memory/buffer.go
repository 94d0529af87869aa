// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

var buffers = border.NewTable[*cuda.Buffer]("buffer")

//export cudagoBufferNew
func cudagoBufferNew(mr, size, on C.uint64_t, ptr, host *C.uint64_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		r, err := Resources.Get(uint64(mr))
		if err != nil {
			return err
		}
		var s *cuda.Stream
		if on != 0 {
			if s, err = stream.Streams.Get(uint64(on)); err != nil {
				return err
			}
		}
		var b *cuda.Buffer
		err = AfterReleases(func() error {
			b, err = r.Allocate(uint64(size), s)
			return err
		})
		if err != nil {
			return err
		}
		*ptr, *host = C.uint64_t(b.Ptr()), C.uint64_t(b.Ptr())
		id = C.uint64_t(buffers.Put(b))
		return nil
	})
	return id
}

// patience is how long an allocation, or a reset, waits for earlier releases.
const patience = C.CUDAGO_PATIENCE_MS * time.Millisecond

// AfterReleases calls allocate. If there is no memory, or a graph that can have
// only one executable still has it, the reaper may yet have to give back what
// was released before. So AfterReleases waits for the reaper and tries once
// more, even if nothing is pending any more: the last release may have ended
// just after the first attempt.
func AfterReleases(allocate func() error) error {
	err := allocate()
	if errors.Is(err, cuda.ErrorOutOfMemory) || errors.Is(err, cuda.ErrorNotSupported) {
		border.Reaper.Flush(patience)
		err = allocate()
	}
	return err
}

// cudagoMemoryAllocated reports whether a launch has allocated the memory of a
// graph at ptr.
//
//export cudagoMemoryAllocated
func cudagoMemoryAllocated(ordinal C.int32_t, ptr C.uint64_t, st *C.cudago_status) (allocated C.int) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		is, err := c.IsAllocated(uint64(ptr))
		allocated = border.Bool[C.int](is)
		return err
	})
	return allocated
}

// cudagoAddressDevice returns the device that an address is of device memory on,
// or -1 if it is other memory, if the driver does not tell, or if there is only
// one device, so that nobody need ask.
//
//export cudagoAddressDevice
func cudagoAddressDevice(address C.uint64_t) C.int32_t {
	ordinal := -1
	err := border.Contained(border.Relaxed(func() error {
		if d := border.Driver.Load(); d == nil || d.DeviceCount() < 2 {
			return nil
		}
		c, err := border.ContextOf(0)
		if err != nil {
			return err
		}
		info, err := c.PointerInfo(uint64(address))
		if err == nil && info.Kind == cuda.DeviceMemory {
			ordinal = info.Ordinal
		}
		return err
	}))
	if err != nil {
		border.ReportAside(err)
	}
	return C.int32_t(ordinal)
}

// cudagoBufferRelease leaves the buffer to the reaper: freeing host memory waits
// for the device.
//
//export cudagoBufferRelease
func cudagoBufferRelease(id C.uint64_t) {
	if b, ok := buffers.Take(uint64(id)); ok {
		border.Reaper.Add(border.Once(b.Close))
	}
}

// cudagoVirtualRelease gives virtual memory back after what is in its stream now
// and after its uses on other streams. It needs the GIL, because the streams'
// blocks do.
//
//export cudagoVirtualRelease
func cudagoVirtualRelease(id, on C.uint64_t, others, positions *C.uint64_t, n C.int) {
	if b, ok := buffers.Take(uint64(id)); ok {
		afterUses(on, others, positions, n, byReaper(b.CloseIdle))
	}
}

// cudagoHostRelease gives pinned or managed memory back after its uses, in the
// streams of whatever devices. It needs the GIL, as cudagoVirtualRelease does.
//
//export cudagoHostRelease
func cudagoHostRelease(id, on C.uint64_t, others, positions *C.uint64_t, n C.int) {
	if b, ok := buffers.Take(uint64(id)); ok {
		afterUses(on, others, positions, n, byReaper(b.Close))
	}
}

// byReaper leaves a release to the reaper.
func byReaper(release func() error) func() {
	return func() { border.Reaper.Add(border.Once(release)) }
}

// AfterUses calls release for what work in streams uses, once what is in its own
// stream now has ended, and the others have come to the positions. The stream 0
// is none. It needs the GIL, because the streams' blocks do.
func AfterUses(on uint64, others, positions []uint64, release func()) {
	var left atomic.Int64
	left.Store(int64(len(others)) + 1)
	one := func() {
		if left.Add(-1) == 0 {
			release()
		}
	}
	if on == 0 || !stream.AfterAll(on, one) {
		one()
	}
	for i, other := range others {
		if l, err := stream.Lines.Get(other); err == nil {
			l.After(positions[i], one)
		} else {
			one() // its line is gone, so all its work has ended
		}
	}
}

// afterUses is AfterUses for what C hands over.
func afterUses(on C.uint64_t, others, positions *C.uint64_t, n C.int, release func()) {
	slice := func(p *C.uint64_t) []uint64 { return unsafe.Slice((*uint64)(p), int(n)) }
	AfterUses(uint64(on), slice(others), slice(positions), release)
}

// cudagoKeepLate has a reference dropped once a stream that takes no more
// references has come to a position.
//
//export cudagoKeepLate
func cudagoKeepLate(id, position C.uint64_t, ref C.uintptr_t) {
	AfterUses(0, []uint64{uint64(id)}, []uint64{uint64(position)}, func() { border.Drops.Put(uintptr(ref)) })
}

// cudagoBufferGrow enlarges virtual memory and returns its new size.
//
//export cudagoBufferGrow
func cudagoBufferGrow(id, size C.uint64_t, st *C.cudago_status) (now C.uint64_t) {
	guard(st, func() error {
		b, err := buffers.Get(uint64(id))
		if err != nil {
			return err
		}
		err = AfterReleases(func() error { return b.Grow(uint64(size)) })
		now = C.uint64_t(b.Size())
		return err
	})
	return now
}
