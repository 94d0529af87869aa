// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/memfd"
)

// What other processes hand over may be anything: the driver takes it or refuses
// it, and what it has taken can be used to its end.

const (
	posix         = driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	poolMagic     = 0x6f676164756373
	liveMark      = 0x6c697665
	physicalMark  = 0x706f676164756373
	eventMark     = 0x76656f676164756
	semaphoreMark = 0x616d657367756463
	granularity   = 2 << 20
)

func raw(w ...uint64) []byte {
	data, _ := binary.Append(nil, binary.LittleEndian, w)
	return data
}

// forged is a sealed file with some bytes at its beginning and others at a page, of
// at least so many bytes.
func forged(t *testing.T, head, page []byte, size int64) *os.File {
	t.Helper()
	f, err := memfd.Create("forged")
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	require.NoError(t, memfd.Grow(f, size))
	for at, data := range map[int64][]byte{0: head, 4096: page} {
		_, err = f.WriteAt(data, at)
		require.NoError(t, err)
	}
	return f
}

// usePool imports a pool and an allocation of it, and if it gets them, fills all of
// that.
func usePool(t *testing.T, o *one, f *os.File, data []byte) (pool, pointer driver.CUresult) {
	t.Helper()
	h, r := o.CuMemPoolImportFromShareableHandle(int32(f.Fd()), posix, 0)
	if r != driver.CUDA_SUCCESS {
		return r, r
	}
	defer func() { ok(t, o.CuMemPoolDestroy(h)) }()
	var of driver.CUmemPoolPtrExportData
	copy(of.Reserved[:], data)
	p, r := o.CuMemPoolImportPointer(h, &of)
	if r != driver.CUDA_SUCCESS {
		return driver.CUDA_SUCCESS, r
	}
	_, size, r := o.CuMemGetAddressRange(p)
	ok(t, r)
	ok(t, o.CuMemsetD8Async(p, 1, size, 0))
	ok(t, o.CuStreamSynchronize(0))
	ok(t, o.CuMemFreeAsync(p, 0))
	ok(t, o.CuStreamSynchronize(0))
	return driver.CUDA_SUCCESS, driver.CUDA_SUCCESS
}

func TestForgedPools(t *testing.T) {
	o := newOne(t, open(t, ""))
	const size, whole = 1 << 20, 8192 + 1<<20
	for kind := range uint64(9) {
		f := forged(t, raw(poolMagic, 7, 0, kind), raw(liveMark, size), whole)
		pool, pointer := usePool(t, o, f, raw(poolMagic, 7, 4096, size))
		if kind == 1 || kind == 3 {
			require.Equal(t, [2]driver.CUresult{}, [2]driver.CUresult{pool, pointer}, "pools of device and of pinned memory")
		} else {
			require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, pool, kind)
		}
		short := forged(t, raw(poolMagic, 8, 0, kind), raw(liveMark, size), whole-4096)
		_, pointer = usePool(t, o, short, raw(poolMagic, 8, 4096, size))
		require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, pointer, "it has fewer bytes than it says")
	}
	for _, kind := range []uint64{1, 3} { // the file has as many, of which none is anywhere
		f := forged(t, raw(poolMagic, 9, 0, kind), raw(liveMark, 1<<44), 8192+1<<44)
		_, pointer := usePool(t, o, f, raw(poolMagic, 9, 4096, 1<<44))
		require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, pointer, "more than there can be")
	}
	for _, head := range [][]byte{nil, raw(poolMagic), raw(poolMagic+1, 7, 0, 1), raw(poolMagic, 7, 1, 1), raw(poolMagic, 7, 1<<63, 1)} {
		pool, _ := usePool(t, o, forged(t, head, nil, 0), nil)
		require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, pool)
	}
}

// A peer that has the file may make it larger, and no smaller.
func TestAPoolThatOthersMadeLarger(t *testing.T) {
	o := newOne(t, open(t, ""))
	pool, r := o.CuMemPoolCreate(&driver.CUmemPoolProps{AllocType: 1, LocationType: 1, HandleTypes: int32(posix)})
	ok(t, r)
	fd, r := o.CuMemPoolExportToShareableHandle(pool, posix, 0)
	ok(t, r)
	f := os.NewFile(uintptr(fd), "pool")
	defer f.Close()
	require.Error(t, f.Truncate(0))
	require.NoError(t, f.Truncate(1<<30))
	p, r := o.CuMemAllocFromPoolAsync(4096, pool, 0)
	ok(t, r)
	require.Error(t, f.Truncate(4096))
	ok(t, o.CuMemsetD8Async(p, 1, 4096, 0))
	ok(t, o.CuMemFreeAsync(p, 0))
	ok(t, o.CuStreamSynchronize(0))
}

func FuzzPool(f *testing.F) {
	f.Add(raw(poolMagic, 7, 0, 1), raw(liveMark, 4096), raw(poolMagic, 7, 4096, 4096), uint32(3*4096))
	f.Add(raw(poolMagic, 7, 0, 3), raw(liveMark, 5000), raw(poolMagic, 7, 4096, 5000), uint32(4*4096))
	f.Add(raw(poolMagic, 7, 0, 1), raw(liveMark, 1<<62), raw(poolMagic, 7, 4096, 1<<62), uint32(1<<16))
	f.Add([]byte{}, []byte{}, []byte{}, uint32(0))
	f.Fuzz(func(t *testing.T, head, page, data []byte, size uint32) {
		o := newOne(t, open(t, ""))
		usePool(t, o, forged(t, head, page, int64(size%(1<<20))), data)
	})
}

// usePhysical imports physical memory and maps it.
func usePhysical(t *testing.T, o *one, f *os.File) driver.CUresult {
	t.Helper()
	h, r := o.CuMemImportFromShareableHandle(int32(f.Fd()), posix)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	size := binary.LittleEndian.Uint64(readAt(t, f, 8, 8))
	at, r := o.CuMemAddressReserve(size, 0, 0, 0)
	ok(t, r)
	ok(t, o.CuMemMap(at, size, 0, h, 0))
	access := []driver.CUmemAccessDesc{{Location: driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_DEVICE}, Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE}}
	ok(t, o.CuMemSetAccess(at, size, access))
	ok(t, o.CuMemsetD8Async(at, 1, size, 0))
	ok(t, o.CuStreamSynchronize(0))
	ok(t, o.CuMemUnmap(at, size))
	ok(t, o.CuMemAddressFree(at, size))
	ok(t, o.CuMemRelease(h))
	return driver.CUDA_SUCCESS
}

func readAt(t *testing.T, f *os.File, at int64, n int) []byte {
	t.Helper()
	data := make([]byte, n)
	_, err := f.ReadAt(data, at)
	require.NoError(t, err)
	return data
}

func TestForgedPhysicalMemory(t *testing.T) {
	o := newOne(t, open(t, "memory=16MiB"))
	require.Equal(t, driver.CUDA_SUCCESS, usePhysical(t, o, forged(t, raw(physicalMark, 16<<20, 0), nil, 4096+16<<20)))
	for size, bytes := range map[uint64]int64{18 << 20: 1 << 30, 1 << 40: 1 << 41, granularity: granularity, 0: granularity, 4096: granularity} {
		require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, usePhysical(t, o, forged(t, raw(physicalMark, size, 0), nil, bytes)), size)
	}
}

func TestExternalMemoryIsNoLargerThanTheDevice(t *testing.T) {
	o := newOne(t, open(t, "memory=16MiB"))
	f := forged(t, nil, nil, 1<<40)
	_, r := o.CuImportExternalMemory(&driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC{
		Type: driver.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, Fd: int32(f.Fd()), Size: 1 << 40,
	})
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
}

func FuzzPhysical(f *testing.F) {
	f.Add(raw(physicalMark, granularity, 0), uint32(4096+granularity))
	f.Add(raw(physicalMark, granularity, 0), uint32(granularity))
	f.Add(raw(physicalMark, 1<<46, 0), uint32(4096))
	f.Add([]byte{}, uint32(0))
	f.Fuzz(func(t *testing.T, head []byte, size uint32) {
		usePhysical(t, newOne(t, open(t, "")), forged(t, head, nil, int64(size%(1<<23))))
	})
}

// useEvent opens an event and asks and waits for it.
func useEvent(t *testing.T, o *one, words [5]uint64) driver.CUresult {
	t.Helper()
	var handle driver.CUipcEventHandle
	for i, w := range words {
		binary.LittleEndian.PutUint64(handle.Reserved[8*i:], w)
	}
	e, r := o.CuIpcOpenEventHandle(handle)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	o.CuEventQuery(e) // the page may say what it likes
	o.CuEventRecord(e, 0)
	ok(t, o.CuStreamSynchronize(0))
	o.CuEventQuery(e)
	o.CuEventDestroy(e)
	return driver.CUDA_SUCCESS
}

func FuzzEvent(f *testing.F) {
	self := uint64(os.Getpid())
	f.Add(raw(eventMark, 7), raw(0), uint64(eventMark), uint64(7), uint64(0), uint32(8192))
	f.Add(raw(eventMark, 7, 9), raw(1, 2, 3), uint64(eventMark), uint64(7), uint64(0), uint32(8192))
	f.Add(raw(eventMark, 7), raw(0), uint64(eventMark), uint64(7), uint64(8192), uint32(8192))
	f.Add(raw(eventMark, 7), raw(0), uint64(eventMark), uint64(7), uint64(1<<63), uint32(4096))
	f.Fuzz(func(t *testing.T, head, page []byte, magic, id, offset uint64, size uint32) {
		file := forged(t, head, page, int64(size%(1<<20)))
		useEvent(t, newOne(t, open(t, "")), [5]uint64{magic, self, uint64(file.Fd()), id, offset})
	})
}

func FuzzSemaphore(f *testing.F) {
	f.Add(raw(semaphoreMark, 9, 5), uint32(4096))
	f.Add(raw(semaphoreMark, 1, 1), uint32(24))
	f.Add(raw(semaphoreMark, 9), uint32(16))
	f.Fuzz(func(t *testing.T, page []byte, size uint32) {
		o := newOne(t, open(t, ""))
		file := forged(t, page, nil, int64(size%(1<<20)))
		fd, err := memfd.Duplicate(file)
		require.NoError(t, err)
		h, r := o.CuImportExternalSemaphore(&driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC{
			Type: driver.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, Fd: int32(fd),
		})
		if r != driver.CUDA_SUCCESS {
			require.NoError(t, os.NewFile(uintptr(fd), "semaphore").Close())
			return
		}
		ok(t, o.CuDestroyExternalSemaphore(h))
	})
}

// Whatever is said to be machine code is neither run nor read beyond its end.
func FuzzMachineCode(f *testing.F) {
	for _, image := range []string{"\x7fELF\x02\x01\x01", "\x50\xED\x55\xBA\x01\x00\x10\x00", ".version 8.0\n.target sm_75\n.address_size 64\n.entry k() { ret; }", "\x00", ""} {
		f.Add([]byte(image))
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		o := newOne(t, open(t, ""))
		m, log, r := o.CuModuleLoadDataEx(image)
		if r == driver.CUDA_SUCCESS {
			ok(t, o.CuModuleUnload(m))
			return
		}
		require.NotEmpty(t, log)
	})
}
