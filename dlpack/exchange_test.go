// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package dlpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/dlpack"
	"github.com/cudago/cudago/dlpack/dlpacktest"
)

func float32s(data uintptr, shape, strides []int64) dlpacktest.Tensor {
	return dlpacktest.Tensor{
		Data: data, DeviceType: 1, NDim: int32(len(shape)), Code: 2, Bits: 32, Lanes: 1, Shape: shape, Strides: strides,
	}
}

func TestExportIsCanonical(t *testing.T) {
	tests := []struct {
		name          string
		shape         []int64
		strides, want []int64
		offset        uint64
		data          uintptr
	}{
		{name: "row-major", shape: []int64{2, 3}, strides: []int64{3, 1}, want: []int64{3, 1}, data: 0x1000},
		{name: "column-major", shape: []int64{2, 3}, strides: []int64{1, 2}, want: []int64{1, 2}, data: 0x1000},
		{name: "byte offset goes into the pointer", shape: []int64{4}, strides: []int64{2}, want: []int64{2}, offset: 16, data: 0x1010},
		{name: "strides of size 1 are made canonical", shape: []int64{1, 3, 1}, strides: []int64{99, 1, -7}, want: []int64{3, 1, 1}, data: 0x1000},
		{name: "broadcast", shape: []int64{5, 3}, strides: []int64{0, 1}, want: []int64{0, 1}, data: 0x1000},
		{name: "no dimensions", shape: []int64{}, strides: []int64{}, want: []int64{}, data: 0x1000},
		{name: "empty has no data", shape: []int64{3, 0}, strides: []int64{1, 7}, want: []int64{1, 1}, data: 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := dlpacktest.NewCell(4096)
			defer c.ReleaseLocked()
			for _, legacy := range []bool{false, true} {
				d := float32s(0x1000, tt.shape, tt.strides)
				d.ByteOffset = tt.offset
				x, ok := c.Export(d, legacy)
				require.True(t, ok)
				got := x.Tensor()
				x.Delete()
				require.Equal(t, tt.data, got.Data)
				require.Zero(t, got.ByteOffset)
				require.Equal(t, tt.shape, got.Shape)
				require.Equal(t, tt.want, got.Strides)
			}
		})
	}
}

func TestExportHoldsTheCellUntilItsDeleterRuns(t *testing.T) {
	released, before := dlpacktest.Released(), dlpack.ReadStats()
	c := dlpacktest.NewCell(64)
	versioned, ok := c.Export(float32s(0x1000, []int64{4}, []int64{1}), false)
	require.True(t, ok)
	legacy, ok := c.Export(float32s(0x1000, []int64{4}, []int64{1}), true)
	require.True(t, ok)
	c.ReleaseLocked()
	require.Equal(t, released, dlpacktest.Released())
	legacy.Delete()
	require.Zero(t, dlpack.Drain())
	require.True(t, versioned.DeleteOnThread())
	require.Equal(t, released, dlpacktest.Released(), "a deleter frees no memory of the cell's itself")
	require.Equal(t, 1, dlpack.Drain())
	require.Equal(t, released+1, dlpacktest.Released())
	after := dlpack.ReadStats()
	require.EqualValues(t, 2, after.ExportsMade-before.ExportsMade)
	require.EqualValues(t, 2, after.ExportsReleased-before.ExportsReleased)
}

func TestExportWithoutMemoryTakesNoCount(t *testing.T) {
	released := dlpacktest.Released()
	c := dlpacktest.NewCell(64)
	for _, legacy := range []bool{false, true} {
		dlpacktest.FailAt(1)
		_, ok := c.Export(float32s(0x1000, []int64{4}, []int64{1}), legacy)
		require.False(t, ok)
	}
	c.ReleaseLocked()
	require.Equal(t, released+1, dlpacktest.Released())
}

func TestImportRunsTheDeleterOnce(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		live, deleted, before := dlpack.Live(dlpack.KindForeign), dlpacktest.Deleted(), dlpack.ReadStats()
		c, ok := dlpacktest.Import(legacy, false)
		require.True(t, ok)
		size, readonly := c.Size()
		require.EqualValues(t, 16, size)
		require.False(t, readonly)
		require.Equal(t, live+1, dlpack.Live(dlpack.KindForeign))
		c.Retain() // a view
		c.ReleaseLocked()
		require.Equal(t, deleted, dlpacktest.Deleted())
		require.True(t, c.ReleaseOnThreads(1))
		require.Equal(t, deleted, dlpacktest.Deleted(), "a producer's deleter may need Python's lock: the drain runs it")
		require.Equal(t, 1, dlpack.Drain())
		require.Equal(t, deleted+1, dlpacktest.Deleted())
		require.Equal(t, live, dlpack.Live(dlpack.KindForeign))
		require.EqualValues(t, 1, dlpack.ReadStats().ImportsReleased-before.ImportsReleased)
	}
}

func TestImportWithoutDeleter(t *testing.T) {
	for _, legacy := range []bool{false, true} {
		live := dlpack.Live(dlpack.KindForeign)
		c, ok := dlpacktest.Import(legacy, true)
		require.True(t, ok)
		c.ReleaseLocked()
		require.Equal(t, live, dlpack.Live(dlpack.KindForeign))
	}
}

func TestImportWithoutMemoryLeavesTheTensorToItsProducer(t *testing.T) {
	live, deleted := dlpack.Live(dlpack.KindForeign), dlpacktest.Deleted()
	dlpacktest.FailAt(1)
	_, ok := dlpacktest.Import(false, false)
	require.False(t, ok)
	require.Equal(t, deleted+1, dlpacktest.Deleted())
	require.Equal(t, live, dlpack.Live(dlpack.KindForeign))
}

func TestForeignCellThatTookNothing(t *testing.T) {
	live, before := dlpack.Live(dlpack.KindForeign), dlpack.ReadStats()
	dlpacktest.NewForeign().ReleaseLocked()
	require.Equal(t, live, dlpack.Live(dlpack.KindForeign))
	require.Equal(t, before, dlpack.ReadStats())
}
