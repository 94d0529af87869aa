// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDropQueueAsksOncePerBatch(t *testing.T) {
	asked := 0
	var dropped []int
	var hint uint32
	q := NewDropQueue(DropOptions[int]{
		Drop:    func(refs []int) { dropped = append(dropped, refs...) },
		Request: func() bool { asked++; return true },
		Pending: &hint,
	})
	require.False(t, q.Pending())
	require.Zero(t, q.Drain())
	q.Put()
	require.Zero(t, hint)

	q.Put(1, 2)
	q.Put(3)
	require.Equal(t, 1, asked)
	require.Equal(t, uint32(1), hint)
	require.True(t, q.Pending())
	require.Equal(t, 3, q.Len())
	require.Empty(t, dropped)

	require.Equal(t, 3, q.Drain())
	require.Equal(t, []int{1, 2, 3}, dropped)
	require.Zero(t, hint)
	q.Put(4)
	require.Equal(t, 2, asked)
}

func TestDropQueueAsksAgainWhenRefused(t *testing.T) {
	asked := 0
	q := NewDropQueue(DropOptions[int]{
		Drop:    func([]int) {},
		Request: func() bool { asked++; return asked > 2 },
	})
	for range 5 {
		q.Put(1)
	}
	require.Equal(t, 3, asked)
}

func TestDropMayReenter(t *testing.T) {
	var q *DropQueue[int]
	var dropped []int
	nested := 0
	q = NewDropQueue(DropOptions[int]{Drop: func(refs []int) {
		for _, ref := range refs {
			if ref < 3 {
				q.Put(ref + 10)
				nested += q.Drain()
			}
			dropped = append(dropped, ref)
		}
	}})
	q.Put(1, 2, 3)
	require.Equal(t, 3, q.Drain())
	require.Equal(t, 2, nested)
	require.Equal(t, []int{11, 1, 12, 2, 3}, dropped)
	require.Zero(t, q.Len())
}

func TestClosedDropQueueLeaksAndCounts(t *testing.T) {
	var q *DropQueue[int]
	var dropped []int
	q = NewDropQueue(DropOptions[int]{Drop: func(refs []int) {
		dropped = append(dropped, refs...)
		if refs[0] == 1 {
			q.Put(2) // by a __del__ during the last drain: still dropped
		}
	}})
	q.Put(1)
	require.Equal(t, 2, q.Close())
	require.Equal(t, []int{1, 2}, dropped)
	q.Put(3, 4)
	require.Equal(t, uint64(2), q.Leaked())
	require.False(t, q.Pending())
	require.Zero(t, q.Drain())
	require.Equal(t, []int{1, 2}, dropped)
}

func TestDropQueueHammer(t *testing.T) {
	var dropped, asked atomic.Int64
	q := NewDropQueue(DropOptions[int]{
		Drop:    func(refs []int) { dropped.Add(int64(len(refs))) },
		Request: func() bool { return asked.Add(1)%3 != 0 },
	})
	const workers, each = 8, 1000
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range each {
				q.Put(i, i)
				if i%7 == 0 {
					q.Drain()
				}
			}
		})
	}
	wg.Wait()
	q.Drain()
	require.Equal(t, int64(2*workers*each), dropped.Load())
	require.False(t, q.Pending())
}
