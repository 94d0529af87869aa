// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// shared makes a pool, imports it, and fills one allocation.
func shared(t *testing.T, o *one, s driver.CUstream) (imported driver.CUmemoryPool, p driver.CUdeviceptr, data driver.CUmemPoolPtrExportData) {
	t.Helper()
	const posix = driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	pool, r := o.CuMemPoolCreate(&driver.CUmemPoolProps{AllocType: 1, LocationType: 1, HandleTypes: int32(posix)})
	ok(t, r)
	fd, r := o.CuMemPoolExportToShareableHandle(pool, posix, 0)
	ok(t, r)
	imported, r = o.CuMemPoolImportFromShareableHandle(fd, posix, 0)
	ok(t, r)
	require.NoError(t, os.NewFile(uintptr(fd), "pool").Close())
	p, r = o.CuMemAllocFromPoolAsync(10000, pool, s)
	ok(t, r)
	ok(t, o.CuMemsetD32Async(p, 5, 2500, s))
	data, r = o.CuMemPoolExportPointer(p)
	ok(t, r)
	return imported, p, data
}

func TestImportedMemoryIsTheSame(t *testing.T) {
	o := newOne(t, open(t, ""))
	s, r := o.CuStreamCreateWithPriority(1, 0)
	ok(t, r)
	pool, p, data := shared(t, o, s)
	free, _, r := o.CuMemGetInfo()
	ok(t, r)
	q, r := o.CuMemPoolImportPointer(pool, &data)
	ok(t, r)
	require.NotEqual(t, p, q)
	after, _, r := o.CuMemGetInfo()
	ok(t, r)
	require.Equal(t, free, after, "memory of another process does not count")
	ok(t, o.CuMemsetD32Async(q+4, 6, 1, s))
	_, size, r := o.CuMemGetAddressRange(q + 5000)
	ok(t, r)
	require.EqualValues(t, 10000, size)
	ok(t, o.CuMemcpyAsync(p+8, q+4, 4, s))
	got := make([]uint32, 4)
	ok(t, o.CuMemcpyAsync(address(got), p, 16, s))
	ok(t, o.CuMemFreeAsync(q, s))
	ok(t, o.CuStreamSynchronize(s))
	require.Equal(t, []uint32{5, 6, 6, 5}, got)
	ok(t, o.CuMemFreeAsync(p, s))
	ok(t, o.CuStreamSynchronize(s))
	_, r = o.CuMemPoolImportPointer(pool, &data)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r, "it has been freed")
}

func TestImportRefusesOtherData(t *testing.T) {
	o := newOne(t, open(t, ""))
	pool, _, data := shared(t, o, 0)
	other, _, theirs := shared(t, o, 0)
	_, r := o.CuMemPoolImportPointer(other, &data)
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
	for i := range 40 {
		broken := data
		broken.Reserved[i] ^= 0x40
		_, r := o.CuMemPoolImportPointer(pool, &broken)
		require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r, i)
	}
	_, r = o.CuMemPoolImportPointer(other, &theirs)
	ok(t, r)
}

func TestEventsOfTwoHandlesAreOne(t *testing.T) {
	o := newOne(t, open(t, ""))
	s, r := o.CuStreamCreateWithPriority(1, 0)
	ok(t, r)
	e, r := o.CuEventCreate(driver.CU_EVENT_INTERPROCESS | driver.CU_EVENT_DISABLE_TIMING)
	ok(t, r)
	handle, r := o.CuIpcGetEventHandle(e)
	ok(t, r)
	f, r := o.CuIpcOpenEventHandle(handle)
	ok(t, r)
	for range 500 { // more than there are marks
		ok(t, o.CuEventRecord(e, s))
		ok(t, o.CuEventSynchronize(f))
		ok(t, o.CuEventQuery(f))
		ok(t, o.CuEventRecord(f, s))
		ok(t, o.CuStreamWaitEvent(s, e, 0))
		ok(t, o.CuEventSynchronize(e))
	}
	for i := range 40 {
		if i == 8 {
			continue // of the process's number: with another it may be a thread here, which has the same files
		}
		broken := handle
		broken.Reserved[i] ^= 0x41
		_, r = o.CuIpcOpenEventHandle(broken)
		require.Equal(t, driver.CUDA_ERROR_INVALID_HANDLE, r, i)
	}
	ok(t, o.CuEventDestroy(e))
	require.Equal(t, driver.CUDA_ERROR_INVALID_HANDLE, o.CuEventQuery(f))
	_, r = o.CuIpcOpenEventHandle(handle)
	require.Equal(t, driver.CUDA_ERROR_INVALID_HANDLE, r)
}

// descriptors counts those of a kind that this process has open.
func descriptors(t *testing.T, name string) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, d := range list {
		if to, err := os.Readlink("/proc/self/fd/" + d.Name()); err == nil && strings.Contains(to, name) {
			n++
		}
	}
	return n
}

func TestSharedEventsShareADescriptor(t *testing.T) {
	const name = "cudago simulated events"
	before := descriptors(t, name)
	o := newOne(t, open(t, ""))
	s, r := o.CuStreamCreateWithPriority(1, 0)
	ok(t, r)
	var events, opened []driver.CUevent
	for i := range 300 {
		e, r := o.CuEventCreate(driver.CU_EVENT_INTERPROCESS | driver.CU_EVENT_DISABLE_TIMING)
		ok(t, r)
		events = append(events, e)
		if i%2 == 0 {
			handle, r := o.CuIpcGetEventHandle(e)
			ok(t, r)
			f, r := o.CuIpcOpenEventHandle(handle)
			ok(t, r)
			ok(t, o.CuEventRecord(f, s))
			ok(t, o.CuEventSynchronize(e))
			opened = append(opened, f)
		}
	}
	require.Equal(t, before+1, descriptors(t, name))
	for i, e := range events {
		require.Equal(t, before+1, descriptors(t, name), i)
		ok(t, o.CuEventRecord(e, s)) // made when the event is gone
		ok(t, o.CuStreamWaitEvent(s, e, 0))
		ok(t, o.CuEventDestroy(e))
	}
	require.Equal(t, before, descriptors(t, name))
	ok(t, o.CuStreamSynchronize(s))
	for _, f := range opened {
		require.Equal(t, driver.CUDA_ERROR_INVALID_HANDLE, o.CuEventQuery(f), "its page is still there")
		ok(t, o.CuEventDestroy(f))
	}
	_, r = o.CuEventCreate(driver.CU_EVENT_INTERPROCESS | driver.CU_EVENT_DISABLE_TIMING)
	ok(t, r)
	require.Equal(t, before+1, descriptors(t, name))
}

func TestPagesOfLostEventsAreGivenBack(t *testing.T) {
	o := newOne(t, open(t, ""))
	create := func() driver.CUevent {
		e, r := o.CuEventCreate(driver.CU_EVENT_INTERPROCESS | driver.CU_EVENT_DISABLE_TIMING)
		ok(t, r)
		return e
	}
	create() // keeps the file
	var opened []driver.CUevent
	for i := range 200 {
		e := create()
		if i%10 == 0 {
			handle, r := o.CuIpcGetEventHandle(e)
			ok(t, r)
			f, r := o.CuIpcOpenEventHandle(handle)
			ok(t, r)
			opened = append(opened, f)
		}
		ok(t, o.CuEventDestroy(e))
	}
	const page = 4096 / 512
	require.Eventually(t, func() bool {
		runtime.GC()
		return eventBlocks(t) < 30*page
	}, 10*time.Second, time.Millisecond)
	require.Greater(t, eventBlocks(t), int64(20*page))
	for _, f := range opened {
		require.Equal(t, driver.CUDA_ERROR_INVALID_HANDLE, o.CuEventQuery(f), "what others know stays")
	}
}

// eventBlocks is how much memory the largest file of events has, in units of 512
// bytes.
func eventBlocks(t *testing.T) (blocks int64) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, d := range list {
		path := "/proc/self/fd/" + d.Name()
		var info syscall.Stat_t
		if to, err := os.Readlink(path); err == nil && strings.Contains(to, "cudago simulated events") && syscall.Stat(path, &info) == nil {
			blocks = max(blocks, info.Blocks)
		}
	}
	return blocks
}

// openFiles counts this process's descriptors of files in memory that the simulated
// driver needs for pools and external memory.
func openFiles(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, e := range entries {
		name, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && (strings.HasPrefix(name, "/memfd:cudago simulated memory pool") || strings.HasPrefix(name, "/memfd:test")) {
			n++
		}
	}
	return n
}

// The files are not left to Go's collector, which may not run for long.
func TestFilesOfPoolsAreClosedWithTheLastUse(t *testing.T) {
	o := newOne(t, open(t, ""))
	s, r := o.CuStreamCreateWithPriority(1, 0)
	ok(t, r)
	before := openFiles(t)
	for _, kind := range []int32{1, 3} { // CU_MEM_LOCATION_TYPE_DEVICE, _HOST_NUMA
		const posix = driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
		pool, r := o.CuMemPoolCreate(&driver.CUmemPoolProps{AllocType: 1, LocationType: kind, HandleTypes: int32(posix)})
		ok(t, r)
		fd, r := o.CuMemPoolExportToShareableHandle(pool, posix, 0)
		ok(t, r)
		imported, r := o.CuMemPoolImportFromShareableHandle(fd, posix, 0)
		ok(t, r)
		require.NoError(t, syscall.Close(int(fd)))
		p, r := o.CuMemAllocFromPoolAsync(10000, pool, s)
		ok(t, r)
		data, r := o.CuMemPoolExportPointer(p)
		ok(t, r)
		q, r := o.CuMemPoolImportPointer(imported, &data)
		ok(t, r)
		require.Equal(t, before+2, openFiles(t), "one of each pool")
		ok(t, o.CuMemFree(q))
		ok(t, o.CuMemPoolDestroy(imported))
		require.Equal(t, before+1, openFiles(t), "the imported pool's is closed")
		ok(t, o.CuMemPoolDestroy(pool))
		require.Equal(t, before+1, openFiles(t), "an allocation is left")
		ok(t, o.CuMemFreeAsync(p, s))
		ok(t, o.CuStreamSynchronize(s))
		require.Equal(t, before, openFiles(t))
	}
}

func TestFilesOfPoolsAreClosedByAReset(t *testing.T) {
	o := newOne(t, open(t, ""))
	before := openFiles(t)
	imported, p, data := shared(t, o, 0)
	_, r := o.CuMemPoolImportPointer(imported, &data)
	ok(t, r)
	require.NotZero(t, p)
	require.Equal(t, before+2, openFiles(t))
	ok(t, o.CuDevicePrimaryCtxReset(0))
	require.Equal(t, before, openFiles(t))
}
