// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package dlpack_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/dlpack"
	"github.com/cudago/cudago/dlpack/dlpacktest"
)

func bytesAt(data uintptr, n int64) dlpacktest.Tensor {
	return dlpacktest.Tensor{
		Data: data, DeviceType: 1, NDim: 1, Code: 1, Bits: 8, Lanes: 1, Shape: []int64{n}, Strides: []int64{1},
	}
}

func TestExportedMemoryIsFoundByItsAddress(t *testing.T) {
	c := dlpacktest.NewNoted(0x900000, 0x10000, 64)
	tests := []struct {
		name string
		of   dlpacktest.Tensor
		ptr  uint64 // 0: not found
	}{
		{"all", bytesAt(0x10000, 64), 0x900000},
		{"its end", bytesAt(0x1003f, 1), 0x90003f},
		{"a byte before", bytesAt(0xffff, 2), 0},
		{"a byte beyond", bytesAt(0x10000, 65), 0},
		{"after", bytesAt(0x10040, 1), 0},
		{"nothing", bytesAt(0x10000, 0), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ptr, found := tt.of.Find()
			require.Equal(t, tt.ptr != 0, found)
			if found {
				require.Equal(t, c.ID(), got.ID())
				require.Equal(t, tt.ptr, ptr)
				got.ReleaseLocked()
			}
		})
	}
	backwards := bytesAt(0x1003f, 64)
	backwards.Strides = []int64{-1}
	got, ptr, found := backwards.Find()
	require.True(t, found, "from its last byte to its first")
	require.Equal(t, uint64(0x90003f), ptr)
	got.ReleaseLocked()
	c.ReleaseLocked()
	_, _, found = bytesAt(0x10000, 64).Find()
	require.False(t, found, "gone with its last holder")
}

func TestMemoryOnAnotherDeviceIsNotOurs(t *testing.T) {
	c := dlpacktest.NewNoted(0x10000, 0x10000, 64)
	defer c.ReleaseLocked()
	for device, found := range map[int32]bool{1: true, 2: true, 3: true, 13: false} {
		d := bytesAt(0x10000, 64)
		d.DeviceType = device
		got, _, ok := d.Find()
		require.Equal(t, found, ok, "DLPack device type %d", device)
		if ok {
			got.ReleaseLocked()
		}
	}
}

// A cell whose last count has gone without Python's lock waits for a drain: it
// must not come back to life.
func TestMemoryThatIsBeingReleasedIsNotFound(t *testing.T) {
	c := dlpacktest.NewNoted(0x10000, 0x10000, 64)
	c.Release()
	_, _, found := bytesAt(0x10000, 64).Find()
	require.False(t, found)
	require.Positive(t, dlpack.Drain())
}

func TestManyAllocationsAreFound(t *testing.T) {
	const n = 500
	cells := make([]dlpacktest.Cell, n)
	for _, i := range rand.Perm(n) {
		cells[i] = dlpacktest.NewNoted(uint64(i)<<20, uint64(i+1)<<12, 4096)
	}
	for _, i := range rand.Perm(n) {
		got, ptr, found := bytesAt(uintptr(i+1)<<12+4, 4).Find()
		require.True(t, found)
		require.Equal(t, cells[i].ID(), got.ID())
		require.Equal(t, uint64(i)<<20+4, ptr)
		got.ReleaseLocked()
		cells[i].ReleaseLocked()
		_, _, found = bytesAt(uintptr(i+1)<<12, 4).Find()
		require.False(t, found)
	}
}
