// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package native

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
)

// resource is a memory resource that a Python MemoryResource stands for.
type resource struct {
	cuda.MemoryResource
	pool *cuda.DeviceMemoryResource // nil if it is no pool
}

var (
	resources = newTable[resource]("memory resource")
	buffers   = newTable[*cuda.Buffer]("buffer")
)

// ownResources counts resources but for those over a device's default pool,
// which are as permanent as the device.
func ownResources() (n int) {
	resources.mu.RLock()
	defer resources.mu.RUnlock()
	for _, r := range resources.m {
		if r.pool == nil || !r.pool.IsDefault() {
			n++
		}
	}
	return n
}

// cudagoResourceRelease: destroying a pool may wait, so it is the reaper's.
//
//export cudagoResourceRelease
func cudagoResourceRelease(id C.uint64_t) {
	if r, ok := resources.take(uint64(id)); ok {
		reaper.Add(once(r.Close))
	}
}

//export cudagoResourceTrim
func cudagoResourceTrim(id, keep C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		p, err := poolOf(id)
		if err != nil {
			return err
		}
		return p.Trim(uint64(keep))
	})
}

func poolOf(id C.uint64_t) (*cuda.DeviceMemoryResource, error) {
	r, err := resources.get(uint64(id))
	if err != nil {
		return nil, err
	}
	if r.pool == nil {
		return nil, &cuda.ArgumentError{Kind: cuda.WrongType, Arg: "memory resource", Text: "has no pool"}
	}
	return r.pool, nil
}

//export cudagoResourceStat
func cudagoResourceStat(id C.uint64_t, what C.int, st *C.cudago_status) (v C.uint64_t) {
	guard(st, func() error {
		p, err := poolOf(id)
		if err != nil {
			return err
		}
		if what == 4 {
			t, err := p.ReleaseThreshold()
			v = C.uint64_t(t)
			return err
		}
		s, err := p.Statistics()
		if err != nil {
			return err
		}
		v = C.uint64_t([]uint64{s.Used, s.UsedHigh, s.Reserved, s.ReservedHigh}[what])
		return nil
	})
	return v
}

//export cudagoBufferNew
func cudagoBufferNew(mr, size, stream C.uint64_t, ptr, host *C.uint64_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		r, err := resources.get(uint64(mr))
		if err != nil {
			return err
		}
		var s *cuda.Stream
		if stream != 0 {
			if s, err = streams.get(uint64(stream)); err != nil {
				return err
			}
		}
		var b *cuda.Buffer
		err = afterReleases(func() error {
			b, err = r.Allocate(uint64(size), s)
			return err
		})
		if err != nil {
			return err
		}
		*ptr, *host = C.uint64_t(b.Ptr()), C.uint64_t(b.Ptr())
		id = C.uint64_t(buffers.put(b))
		return nil
	})
	return id
}

// patience is how long an allocation waits for releases.
const patience = C.CUDAGO_PATIENCE_MS * time.Millisecond

// afterReleases allocates, and where there is no memory does so once more when
// what was let go of before has been given back: that is the reaper's, and late.
// So with an executable of a graph that can have only one. It does so even if
// nothing is pending any more: the last release may have ended just after the
// first attempt.
func afterReleases(allocate func() error) error {
	err := allocate()
	if errors.Is(err, cuda.ErrorOutOfMemory) || errors.Is(err, cuda.ErrorNotSupported) {
		reaper.Flush(patience)
		err = allocate()
	}
	return err
}

// cudagoBufferRelease: freeing host memory waits for the device, so it is the
// reaper's.
//
//export cudagoBufferRelease
func cudagoBufferRelease(id C.uint64_t) {
	if b, ok := buffers.take(uint64(id)); ok {
		reaper.Add(once(b.Close))
	}
}

// cudagoVirtualRelease gives virtual memory back after what is in its stream now,
// and after its uses on others. It needs the GIL, as the streams' blocks do.
//
//export cudagoVirtualRelease
func cudagoVirtualRelease(id, stream C.uint64_t, others, positions *C.uint64_t, n C.int) {
	b, ok := buffers.take(uint64(id))
	if !ok {
		return
	}
	var left atomic.Int64
	left.Store(int64(n) + 1)
	one := func() {
		if left.Add(-1) == 0 {
			reaper.Add(once(b.CloseIdle))
		}
	}
	if !afterAll(stream, one) {
		one()
	}
	at := unsafe.Slice(positions, int(n))
	for i, other := range unsafe.Slice(others, int(n)) {
		if l, err := lines.get(uint64(other)); err == nil {
			l.After(uint64(at[i]), one)
		} else {
			one() // its line has gone, so all has ended
		}
	}
}

// cudagoBufferGrow makes virtual memory larger and returns the size that it has.
//
//export cudagoBufferGrow
func cudagoBufferGrow(id, size C.uint64_t, st *C.cudago_status) (now C.uint64_t) {
	guard(st, func() error {
		b, err := buffers.get(uint64(id))
		if err != nil {
			return err
		}
		err = afterReleases(func() error { return b.Grow(uint64(size)) })
		now = C.uint64_t(b.Size())
		return err
	})
	return now
}

// hostVisible says whether the driver's device memory has addresses for the
// host, which a byte of it tells. Other libraries then see all our memory as the
// host's.
var hostVisible atomic.Int32 // 0: not known yet, 1: no, 2: yes

//export cudagoHostVisible
func cudagoHostVisible(ordinal C.int32_t) C.int32_t {
	if v := hostVisible.Load(); v != 0 {
		return C.int32_t(v - 1)
	}
	visible := C.int32_t(0)
	// Relaxed: it may be asked first while somebody captures.
	err := contained(relaxed(func() error {
		c, err := contextOf(ordinal)
		if err != nil {
			return err
		}
		mr, err := c.Device().DefaultMemoryResource()
		if err != nil {
			return err
		}
		b, err := mr.Allocate(1, c.DefaultStream(cuda.Legacy))
		if err != nil {
			return err
		}
		if c.HostPointer(b.Ptr()) != 0 {
			visible = 1
		}
		hostVisible.Store(int32(visible) + 1)
		return b.Close()
	}))
	if err != nil {
		reportAside(err)
	}
	return visible
}

// cudagoHostAddress returns the host's address of device memory, or 0 if it has
// none.
//
//export cudagoHostAddress
func cudagoHostAddress(ordinal C.int32_t, ptr C.uint64_t) (host C.uint64_t) {
	var st C.cudago_status
	guard(&st, func() error {
		c, err := contextOf(ordinal)
		if err != nil {
			return err
		}
		host = C.uint64_t(c.HostPointer(uint64(ptr)))
		return nil
	})
	return host
}

//export cudagoHostKnown
func cudagoHostKnown(address C.uint64_t) (known C.int) {
	var st C.cudago_status
	guard(&st, func() error {
		c, err := contextOf(0)
		if err != nil {
			return err
		}
		info, err := c.PointerInfo(uint64(address))
		if err == nil && info.Kind != cuda.HostMemory {
			known = 1
		}
		return err
	})
	return known
}

//export cudagoAllowHost
func cudagoAllowHost(p, size C.uint64_t) { drv.Load().AllowHost(uintptr(p), uint64(size)) }

//export cudagoDisallowHost
func cudagoDisallowHost(p, size C.uint64_t) { drv.Load().DisallowHost(uintptr(p), uint64(size)) }

//export cudagoMemset
func cudagoMemset(stream, dst C.uint64_t, value, width C.uint32_t, count C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		s, err := streams.get(uint64(stream))
		if err != nil {
			return err
		}
		return cuda.Memset(uint64(dst), uint32(value), int(width), uint64(count), s)
	})
}
