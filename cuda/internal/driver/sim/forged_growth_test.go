// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/growth"
	"github.com/cudago/cudago/internal/memfd"
)

// What another process hands over is opened for the same, whatever it says of its
// size: files of n MiB, and n allocations and events of one.
func TestForgedFilesCostNoMore(t *testing.T) {
	var o *one
	sized := func(head, page []byte) func(n int) *os.File {
		return func(n int) *os.File { return forged(t, head, page, int64(n)<<20) }
	}
	const size = 1 << 30
	kinds := map[string]struct {
		made func(n int) *os.File
		open func(f *os.File)
	}{
		"pool": {sized(raw(poolMagic, 7, 0, 1), raw(liveMark, size)), func(f *os.File) {
			h, r := o.CuMemPoolImportFromShareableHandle(int32(f.Fd()), posix, 0)
			ok(t, r)
			ok(t, o.CuMemPoolDestroy(h))
		}},
		"pool with nonsense": {sized(raw(1, 2, 3, 4), nil), func(f *os.File) {
			_, r := o.CuMemPoolImportFromShareableHandle(int32(f.Fd()), posix, 0)
			require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, r)
		}},
		"physical memory": {sized(raw(physicalMark, granularity, 0), nil), func(f *os.File) { require.Equal(t, driver.CUDA_SUCCESS, usePhysical(t, o, f)) }},
		"event": {sized(raw(eventMark, 7), raw(0)), func(f *os.File) {
			useEvent(t, o, [5]uint64{eventMark, uint64(os.Getpid()), uint64(f.Fd()), 7, 4096})
		}},
		"semaphore": {sized(raw(semaphoreMark, 9, 5), nil), func(f *os.File) {
			fd, err := memfd.Duplicate(f)
			require.NoError(t, err)
			h, r := o.CuImportExternalSemaphore(&driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC{
				Type: driver.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, Fd: int32(fd),
			})
			ok(t, r)
			ok(t, o.CuDestroyExternalSemaphore(h))
		}},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			o = newOne(t, open(t, ""))
			growth.RequireLinear(t, 64, kind.made, kind.open)
		})
	}
}

func TestManyPointersOfAForgedPool(t *testing.T) {
	o := newOne(t, open(t, ""))
	growth.RequireLinear(t, 250, func(n int) int { return n }, func(n int) {
		f := forged(t, raw(poolMagic, 7, 0, 1), nil, int64(n+2)<<12)
		for i := range n {
			_, err := f.WriteAt(raw(liveMark, 64), int64(i+1)<<12)
			require.NoError(t, err)
		}
		pool, r := o.CuMemPoolImportFromShareableHandle(int32(f.Fd()), posix, 0)
		ok(t, r)
		var all []driver.CUdeviceptr
		for i := range n {
			var of driver.CUmemPoolPtrExportData
			copy(of.Reserved[:], raw(poolMagic, 7, uint64(i+1)<<12, 64))
			p, r := o.CuMemPoolImportPointer(pool, &of)
			ok(t, r)
			all = append(all, p)
		}
		for _, p := range all {
			ok(t, o.CuMemFreeAsync(p, 0))
		}
		ok(t, o.CuStreamSynchronize(0))
		ok(t, o.CuMemPoolDestroy(pool))
	})
}

// What says that it is machine code, or text of a kind that is not there.
func TestMachineCodeIsRefusedForTheSame(t *testing.T) {
	for name, head := range map[string]string{
		"cubin": "\x7fELF\x02\x01\x01", "fatbin": "\x50\xED\x55\xBA\x01\x00\x10\x00", "LTO-IR": "\xed\x43\x4e\x7f", "bitcode": "BC\xc0\xde", "zeros": "\x00",
	} {
		t.Run(name, func(t *testing.T) {
			o := newOne(t, open(t, ""))
			growth.RequireLinear(t, 1<<20, func(n int) []byte {
				image := append([]byte(head), make([]byte, n)...)
				for i := len(head) + 8; i+8 < len(image); i += 8 { // sizes and offsets that lead everywhere
					binary.LittleEndian.PutUint64(image[i:], uint64(i*7919%n))
				}
				return image
			}, func(image []byte) {
				_, log, r := o.CuModuleLoadDataEx(image)
				require.NotEqual(t, driver.CUDA_SUCCESS, r)
				require.Less(t, len(log), 4096)
			})
		})
	}
}
