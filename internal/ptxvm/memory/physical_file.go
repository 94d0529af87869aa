// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"
	"os"
	"syscall"

	"github.com/cudago/cudago/internal/memfd"
)

// physicalFile is a file in memory with the physical memory of a device. Memory in
// a file can be mapped a second time, where it gets its address. Anonymous memory
// can by mremap with an old size of 0 alone, which emulators lack. There is one
// file, for descriptors are few, and it is open while there is memory in it. No
// place in it is used twice.
type physicalFile struct {
	file *os.File
	next int64 // where the next memory goes
	live int   // parts that are in use
}

// filePart is where in a file memory lies.
type filePart struct {
	file   *os.File
	offset int64
	of     *physicalFile // nil if the memory has the file for itself
}

// take makes room for memory.
func (f *physicalFile) take(size uint64) (filePart, error) {
	if size > 1<<46 || f.next > math.MaxInt64-1<<46 {
		return filePart{}, syscall.ENOMEM
	}
	if f.file == nil {
		file, err := memfd.Create("cudago simulated device")
		if err != nil {
			return filePart{}, err
		}
		*f = physicalFile{file: file}
	}
	part := filePart{file: f.file, offset: f.next, of: f}
	f.live++
	if err := memfd.Grow(f.file, f.next+int64(size)); err != nil {
		part.giveBack(0)
		return filePart{}, err
	}
	f.next += int64(size)
	return part, nil
}

// giveBack frees memory that take made; a file of the caller's stays the caller's.
func (p filePart) giveBack(size uint64) {
	f := p.of
	if f == nil {
		return
	}
	if f.live--; f.live == 0 {
		_ = f.file.Close()
		f.file = nil
	} else if size > 0 {
		memfd.Free(p.file.Fd(), p.offset, size)
	}
}
