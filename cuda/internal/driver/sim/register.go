// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// CuMemHostRegister lets every device access host memory that was allocated
// elsewhere, at its own address. Codes that cuda.h does not specify were
// observed on an H200, driver 580.159, CUDA 13.0: memory that CUDA allocated
// itself, that is not mapped, or that the process may not write is an invalid
// value.
func (d *simulator) CuMemHostRegister(host uintptr, size uint64, flags uint32) driver.CUresult {
	const ioMemory = 4 // CU_MEMHOSTREGISTER_IOMEMORY, cuda.h, CUDA 12.4
	const known = driver.CU_MEMHOSTREGISTER_PORTABLE | driver.CU_MEMHOSTREGISTER_DEVICEMAP | driver.CU_MEMHOSTREGISTER_READ_ONLY
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	base, end := uint64(host), uint64(host)+size
	if base == 0 || size == 0 || end < base || flags&^(known|ioMemory) != 0 {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	if flags&ioMemory != 0 {
		return driver.CUDA_ERROR_NOT_SUPPORTED
	}
	if !hostMapped(base, end, flags&driver.CU_MEMHOSTREGISTER_READ_ONLY == 0) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	a := &allocation{
		base: base, size: size, kind: memRegistered, id: bufferCount.Add(1), ctx: c, site: d.check.site(allocators[memRegistered]),
		readOnly: flags&driver.CU_MEMHOSTREGISTER_READ_ONLY != 0,
	}
	if other := d.space.addFree(a); other != nil {
		if other.kind == memRegistered {
			return driver.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
		}
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	for _, dev := range d.devices {
		if a.readOnly {
			dev.memory.AddReadOnly(host, size, memory.HostRegistered)
		} else {
			dev.memory.AddHost(host, size, memory.HostRegistered)
		}
	}
	if d.cameTooLate(a) {
		return driver.CUDA_ERROR_CONTEXT_IS_DESTROYED
	}
	return driver.CUDA_SUCCESS
}

// CuMemHostUnregister waits for the context's work, as freeing pinned memory
// does.
func (d *simulator) CuMemHostUnregister(host uintptr) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	a := d.space.find(uint64(host))
	if a == nil || a.freed.Load() {
		return driver.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
	}
	if a.kind != memRegistered || a.base != uint64(host) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	if !d.give(a, "cuMemHostUnregister") {
		return driver.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
	}
	a.ctx.drain()
	d.release(a, "cuMemHostUnregister")
	return a.ctx.result()
}

// hostMapped reports whether the process can read all of [base, end), and write
// it if required. Trying the accesses is no alternative: a write that changes
// no byte would still race with the program's own.
func hostMapped(base, end uint64, writable bool) bool {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return true // unknown; a kernel's access is checked when it happens
	}
	defer func() { _ = maps.Close() }()
	return mappedIn(maps, base, end, writable)
}

// mappedIn is hostMapped for the text of proc(5), /proc/pid/maps: lines in the
// order of their addresses.
func mappedIn(maps io.Reader, base, end uint64, writable bool) bool {
	lines := bufio.NewScanner(maps)
	for lines.Scan() && base < end {
		var from, to uint64
		var access string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &access); n < 3 || to <= base {
			continue
		}
		if from > base || access[0] != 'r' || writable && (len(access) < 2 || access[1] != 'w') {
			return false
		}
		base = to
	}
	return base >= end
}
