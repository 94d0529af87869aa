// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"syscall"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/memfd"
)

// externalMemory is a file in memory, which stands for memory of another API. The
// handle and each buffer that is mapped hold the file.
type externalMemory struct {
	ctx  *context
	file *heldFile
	size uint64
}

// externalPage is what the offset of a mapped buffer is a multiple of.
const externalPage = 4096

func (d *simulator) CuImportExternalMemory(desc *driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC) (driver.CUexternalMemory, driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if desc == nil || desc.Size == 0 || desc.Flags&^driver.CUDA_EXTERNAL_MEMORY_DEDICATED != 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	if desc.Type != driver.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD {
		return 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	var info syscall.Stat_t
	// A file on a disk, which has no seals, is hardly meant to be a device's memory.
	if memfd.Seal(int(desc.Fd)) != nil || syscall.Fstat(int(desc.Fd), &info) != nil {
		return 0, driver.CUDA_ERROR_INVALID_HANDLE
	}
	_, total := c.dev.memory.Info() // a file in memory has any size that somebody gave it
	if desc.Size > min(uint64(info.Size), total) {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	m := &externalMemory{ctx: c, file: holdFile(os.NewFile(uintptr(desc.Fd), "external memory")), size: desc.Size}
	return d.externals.add(m), driver.CUDA_SUCCESS
}

func (d *simulator) CuExternalMemoryGetMappedBuffer(h driver.CUexternalMemory, desc *driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC) (driver.CUdeviceptr, driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	m := d.externals.get(h)
	if m == nil {
		return 0, driver.CUDA_ERROR_INVALID_HANDLE
	}
	if desc == nil || desc.Flags != 0 || desc.Size == 0 || desc.Offset%externalPage != 0 || desc.Offset > m.size || desc.Size > m.size-desc.Offset {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	if r := m.ctx.result(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	use := m.file.use()
	if use == nil { // destroyed meanwhile
		return 0, driver.CUDA_ERROR_INVALID_HANDLE
	}
	a := &allocation{kind: memDevice, external: use, offset: desc.Offset}
	if r := d.allocate(c, desc.Size, a); r != driver.CUDA_SUCCESS {
		use.end()
		return 0, r
	}
	return driver.CUdeviceptr(a.base), driver.CUDA_SUCCESS
}

// CuDestroyExternalMemory leaves what is still mapped: with NVIDIA's driver that
// is undefined.
func (d *simulator) CuDestroyExternalMemory(h driver.CUexternalMemory) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	m := d.externals.take(h)
	if m == nil {
		return driver.CUDA_ERROR_INVALID_HANDLE
	}
	m.file.letGo()
	return m.ctx.result()
}
