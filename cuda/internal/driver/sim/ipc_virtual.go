// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"io"
	"os"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/memfd"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// physicalMagic begins the file of physical memory that other processes may
// import, whose descriptor is the shareable handle. The first page says what it
// is, and the memory follows.
const physicalMagic = 0x706f676164756373 // "scudagop"

// createShared makes the memory in a file.
func (p *physical) createShared(size uint64) error {
	f, err := memfd.Create("cudago simulated memory")
	if err != nil {
		return err
	}
	head, err := binary.Append(nil, binary.LittleEndian, []uint64{physicalMagic, size, uint64(p.dev.ordinal)})
	if err == nil {
		_, err = f.WriteAt(head, 0)
	}
	if err == nil {
		err = memfd.Grow(f, sharedPage+int64(min(size, 1<<46))) // more is refused below
	}
	if err == nil {
		p.memory, err = p.dev.memory.CreateFile(f, sharedPage, size, false)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	p.file = f
	return nil
}

// CuMemExportToShareableHandle returns a descriptor of the memory's file.
func (d *simulator) CuMemExportToShareableHandle(h driver.CUmemGenericAllocationHandle, typ driver.CUmemAllocationHandleType, flags uint64) (int32, driver.CUresult) {
	if r := d.virtualCall(); r != driver.CUDA_SUCCESS {
		return -1, r
	}
	p := d.virtual.handles.get(h)
	if p == nil || p.file == nil || flags != 0 || typ != driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
		return -1, driver.CUDA_ERROR_INVALID_VALUE
	}
	fd, err := memfd.Duplicate(p.file)
	if err != nil {
		return -1, resultOf(err, driver.CUDA_ERROR_INVALID_VALUE)
	}
	return int32(fd), driver.CUDA_SUCCESS
}

// CuMemImportFromShareableHandle maps another process's file, as memory of the
// device of the same number.
func (d *simulator) CuMemImportFromShareableHandle(fd int32, typ driver.CUmemAllocationHandleType) (driver.CUmemGenericAllocationHandle, driver.CUresult) {
	if r := d.virtualCall(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if typ != driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	f, err := memfd.Open(os.Getpid(), int(fd))
	if err != nil {
		return 0, resultOf(err, driver.CUDA_ERROR_INVALID_VALUE)
	}
	size, ordinal, ok := readPhysical(f)
	if !ok || ordinal >= uint64(len(d.devices)) {
		_ = f.Close()
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	p := &physical{dev: d.devices[ordinal]}
	if p.memory, err = p.dev.memory.CreateFile(f, sharedPage, size, true); err != nil {
		_ = f.Close()
		return 0, resultOf(err, driver.CUDA_ERROR_INVALID_VALUE)
	}
	return d.virtual.handles.add(p), driver.CUDA_SUCCESS
}

// readPhysical reads what a file says of its memory, if it is one of createShared.
// Whether it has as many bytes is seen where they are mapped.
func readPhysical(f *os.File) (size, ordinal uint64, ok bool) {
	var head [3]uint64
	if binary.Read(io.NewSectionReader(f, 0, sharedPage), binary.LittleEndian, head[:]) != nil || head[0] != physicalMagic {
		return 0, 0, false
	}
	size = head[1]
	return size, head[2], size > 0 && size%memory.MappingGranularity == 0 && size <= 1<<46
}
