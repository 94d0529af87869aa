// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/fault"
)

// batchOf makes copies of what they have: a destination, a source and a size.
func batchOf(list ...[3]uint64) (copies []BatchCopy) {
	for _, c := range list {
		copies = append(copies, BatchCopy{Dst: c[0], Src: c[1], Size: c[2]})
	}
	return copies
}

func TestBatchRefusesOverlap(t *testing.T) {
	for name, tt := range map[string]struct {
		copies []BatchCopy
		bad    bool
	}{
		"none":                       {nil, false},
		"apart":                      {batchOf([3]uint64{0x1000, 0x2000, 16}, [3]uint64{0x1010, 0x2010, 16}), false},
		"one source for two":         {batchOf([3]uint64{0x1000, 0x2000, 16}, [3]uint64{0x1010, 0x2000, 16}), false},
		"of no bytes":                {batchOf([3]uint64{0x1000, 0x2000, 16}, [3]uint64{0x1008, 0x2000, 0}), false},
		"one destination for two":    {batchOf([3]uint64{0x1000, 0x2000, 16}, [3]uint64{0x100f, 0x3000, 16}), true},
		"written by one, then read":  {batchOf([3]uint64{0x1000, 0x2000, 16}, [3]uint64{0x3000, 0x1008, 4}), true},
		"read by one, then written":  {batchOf([3]uint64{0x1000, 0x2000, 16}, [3]uint64{0x2004, 0x3000, 4}), true},
		"onto itself":                {batchOf([3]uint64{0x1000, 0x1008, 16}), true},
		"what is there already":      {batchOf([3]uint64{0x1000, 0x1000, 16}), false},
		"that, and read":             {batchOf([3]uint64{0x1000, 0x1000, 16}, [3]uint64{0x3000, 0x1008, 4}), true},
		"inside a long source":       {batchOf([3]uint64{0x9000, 0x1000, 0x1000}, [3]uint64{0x5000, 0x1004, 4}, [3]uint64{0x1800, 0x6000, 1}), true},
		"behind one that ended long": {batchOf([3]uint64{0x1000, 0x2000, 0x800}, [3]uint64{0x1900, 0x3000, 4}), false},
	} {
		t.Run(name, func(t *testing.T) {
			err := disjoint(tt.copies)
			require.Equal(t, tt.bad, err != nil, "%v", err)
		})
	}
}

func TestBatchOnEachKindOfDriver(t *testing.T) {
	for _, missing := range []bool{false, true} {
		c := openSimulated(t, Options{})
		s, err := c.NewStream(StreamOptions{})
		require.NoError(t, err)
		faults := fault.New(c.drv.api)
		c.drv.api = faults
		mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
		require.NoError(t, err)
		b := allocate(t, mr, 64, s)
		require.NoError(t, b.Fill(1, 1, s))
		half, err := b.Slice(0, 8)
		require.NoError(t, err)
		require.NoError(t, half.Fill(7, 1, s))
		require.NoError(t, half.Close())
		if missing {
			faults.Fail("CuMemcpyBatchAsync", 1, driver.CUDA_ERROR_NOT_SUPPORTED)
		}
		p := b.Ptr()
		require.NoError(t, MemcpyBatch(batchOf([3]uint64{p + 32, p, 4}, [3]uint64{p + 40, p + 4, 4}, [3]uint64{p, p, 0}), false, s))
		got := make([]byte, 64)
		require.NoError(t, b.CopyToHost(got, s))
		require.NoError(t, s.Synchronize())
		require.Equal(t, []byte{7, 7, 7, 7, 1, 1, 1, 1, 7, 7, 7, 7, 1}, got[32:45])
		want := 0
		if missing {
			want = 2
		}
		require.Equal(t, want, faults.Calls("CuMemcpyAsync")-1, "copies one by one")
		faults.Fail("CuMemcpyBatchAsync", 1, driver.CUDA_ERROR_INVALID_VALUE)
		require.ErrorIs(t, MemcpyBatch(batchOf([3]uint64{p + 32, p, 4}, [3]uint64{p + 40, p, 4}), false, s), ErrorInvalidValue)
		require.NoError(t, MemcpyBatch(nil, false, s))
		require.NoError(t, b.Close())
		require.NoError(t, mr.Close())
		require.NoError(t, s.Close())
		require.ErrorIs(t, MemcpyBatch(nil, false, s), ErrClosed)
	}
}

func TestBatchBetweenDevices(t *testing.T) {
	here, there, s := twoDevices(t)
	context, err := there.Context()
	require.NoError(t, err)
	faults := fault.New(s.ctx.drv.api)
	s.ctx.drv.api = faults
	mine, err := NewDeviceMemoryResource(here, PoolOptions{})
	require.NoError(t, err)
	theirs, err := NewDeviceMemoryResource(there, PoolOptions{})
	require.NoError(t, err)
	other := otherStream(t, there)
	a, b := allocate(t, mine, 64, s), allocate(t, theirs, 64, other)
	require.NoError(t, b.Fill(5, 1, other))
	require.NoError(t, a.Fill(1, 1, s))
	require.NoError(t, other.Synchronize())
	copies := append(batchOf([3]uint64{a.Ptr(), a.Ptr() + 32, 8}, [3]uint64{a.Ptr() + 8, a.Ptr() + 40, 8}),
		BatchCopy{a.Ptr() + 16, b.Ptr(), 8, s.ctx, context})
	require.ErrorContains(t, MemcpyBatch(append(copies, copies[2]), false, s), "copies 2 and 3 overlap")
	faults.Fail("CuMemcpyPeerAsync", 1, driver.CUDA_ERROR_UNKNOWN)
	require.ErrorIs(t, MemcpyBatch(copies, false, s), ErrorUnknown)
	require.Zero(t, faults.Calls("CuMemcpyBatchAsync"))
	require.NoError(t, MemcpyBatch(copies, false, s))
	require.Equal(t, 1, faults.Calls("CuMemcpyBatchAsync"))
	got := make([]byte, 64)
	require.NoError(t, a.CopyToHost(got, s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, []byte{1, 5, 5, 5, 5, 5, 5, 5, 5, 1}, got[15:25])
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	require.NoError(t, mine.Close())
	require.NoError(t, theirs.Close())
}

func TestBatchesSayWhatWasRefused(t *testing.T) {
	c := openSimulated(t, Options{})
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	faults := fault.New(c.drv.api)
	c.drv.api = faults
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
	require.NoError(t, err)
	b := allocate(t, mr, 64, s)
	p := b.Ptr()
	copies := batchOf([3]uint64{p, p, 0}, [3]uint64{p + 32, p, 4}, [3]uint64{p + 40, p + 1<<30, 4})
	require.ErrorContains(t, MemcpyBatch(copies, false, s), "copy 2: 4 bytes from ")
	require.ErrorContains(t, MemcpyBatch(copies, false, s), "its src is not inside memory that the driver knows")
	require.ErrorContains(t, MemcpyBatch(copies, true, s), "copy 2: 4 bytes from ")
	copies[2].Src = p + 4
	faults.Fail("CuMemcpyBatchAsync", 1, driver.CUDA_ERROR_INVALID_VALUE)
	require.ErrorContains(t, MemcpyBatch(copies, false, s), "one of copy 1: 4 bytes from")
	require.ErrorContains(t, MemcpyBatch(batchOf([3]uint64{p, p + 2, 4}), false, s), "src and dst of copy 0: 4 bytes from")
	for _, single := range []bool{false, true} {
		if single {
			faults.Fail("CuMemPrefetchBatchAsync", 1, driver.CUDA_ERROR_NOT_SUPPORTED)
		}
		err := PrefetchBatch([]BatchPrefetch{{p, 0, Location{}}, {p, 8, Location{}}, {p, 4, Location{}}}, s)
		require.ErrorContains(t, err, "prefetch 1: ")
		require.ErrorContains(t, err, "8 bytes at")
		require.ErrorIs(t, err, ErrorInvalidValue)
	}
	require.NoError(t, b.Close())
	require.NoError(t, mr.Close())
	require.NoError(t, s.Close())
}
