// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math/bits"
	"syscall"
	"unsafe"

	"github.com/cudago/cudago/internal/memfd"
)

// Host memory behind device memory. Small blocks are cut from slabs by powers
// of two, large ones are mappings of their own.
const (
	slabBytes     = 1 << 20
	smallestBlock = 8  // log2
	largestBlock  = 16 // log2; larger blocks are mapped alone
)

// backing hands out host memory that is outside Go's heap.
type backing struct {
	slabs    [][]byte
	free     [largestBlock + 1][]unsafe.Pointer
	mappings map[unsafe.Pointer][]byte
}

// hostBlock is the host side of an allocation.
type hostBlock struct {
	host  unsafe.Pointer
	class uint8 // log2 of a small block's size; 0 for a mapping
}

func (b *backing) get(size uint64) (hostBlock, error) {
	if size > 1<<largestBlock {
		return b.mapping(size)
	}
	class := max(smallestBlock, bits.Len64(size-1))
	if len(b.free[class]) == 0 {
		if err := b.cut(class); err != nil {
			return hostBlock{}, err
		}
	}
	last := len(b.free[class]) - 1
	p := b.free[class][last]
	b.free[class] = b.free[class][:last]
	return hostBlock{p, uint8(class)}, nil
}

// cut maps one slab and cuts it into blocks of one class.
func (b *backing) cut(class int) error {
	slab, err := mapMemory(slabBytes)
	if err != nil {
		return err
	}
	b.slabs = append(b.slabs, slab)
	for off := slabBytes - 1<<class; off >= 0; off -= 1 << class {
		b.free[class] = append(b.free[class], unsafe.Pointer(&slab[off]))
	}
	return nil
}

func (b *backing) mapping(size uint64) (hostBlock, error) {
	if size > 1<<46 {
		return hostBlock{}, syscall.ENOMEM
	}
	mem, err := mapMemory(int(size))
	if err != nil {
		return hostBlock{}, err
	}
	return b.mapped(mem), nil
}

// file maps part of a file. The offset is that of a page.
func (b *backing) file(fd uintptr, offset int64, size uint64) (hostBlock, error) {
	mem, err := memfd.Map(fd, offset, size)
	if err != nil {
		return hostBlock{}, err
	}
	return b.mapped(mem), nil
}

func (b *backing) mapped(mem []byte) hostBlock {
	if b.mappings == nil {
		b.mappings = map[unsafe.Pointer][]byte{}
	}
	p := unsafe.Pointer(&mem[0])
	b.mappings[p] = mem
	return hostBlock{host: p}
}

func (b *backing) put(h hostBlock) {
	if h.class != 0 {
		b.free[h.class] = append(b.free[h.class], h.host)
		return
	}
	if mem, ok := b.mappings[h.host]; ok {
		delete(b.mappings, h.host)
		unmapMemory(mem)
	}
}

func (b *backing) close() {
	for _, mem := range b.mappings {
		unmapMemory(mem)
	}
	for _, slab := range b.slabs {
		unmapMemory(slab)
	}
	*b = backing{}
}

func mapMemory(size int) ([]byte, error) {
	return syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
}

func unmapMemory(mem []byte) {
	if err := syscall.Munmap(mem); err != nil {
		panic("BUG: munmap of a simulated allocation: " + err.Error())
	}
}
