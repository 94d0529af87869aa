// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package dlpack_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/dlpack"
	"github.com/cudago/cudago/dlpack/dlpacktest"
)

func TestCellIsReleasedOnceByItsLastHolder(t *testing.T) {
	live, released := dlpack.Live(dlpack.KindHost), dlpacktest.Released()
	c := dlpacktest.NewCell(64)
	require.Equal(t, live+1, dlpack.Live(dlpack.KindHost))
	c.Retain()
	c.ReleaseLocked()
	require.Equal(t, released, dlpacktest.Released(), "one holder is left")
	c.ReleaseLocked()
	require.Equal(t, released+1, dlpacktest.Released())
	require.Equal(t, live, dlpack.Live(dlpack.KindHost))
}

func TestCellNumbersAreNotReused(t *testing.T) {
	a := dlpacktest.NewCell(1)
	first := a.ID()
	a.ReleaseLocked()
	b := dlpacktest.NewCell(1)
	defer b.ReleaseLocked()
	require.NotZero(t, first)
	require.Greater(t, b.ID(), first)
}

func TestReleaseWithoutTheLockOnlyQueues(t *testing.T) {
	released, pokes := dlpacktest.Released(), dlpacktest.Pokes()
	dlpacktest.CountPokes(true)
	defer dlpacktest.CountPokes(false)
	a, b := dlpacktest.NewCell(1), dlpacktest.NewCell(1)
	require.False(t, dlpack.Pending())
	a.Release()
	b.Release()
	require.True(t, dlpack.Pending())
	require.Equal(t, released, dlpacktest.Released(), "nothing is released before a drain")
	require.Equal(t, pokes+1, dlpacktest.Pokes(), "only the first on an empty stack asks for a drain")
	require.Equal(t, 2, dlpack.Drain())
	require.False(t, dlpack.Pending())
	require.Equal(t, released+2, dlpacktest.Released())
	require.Zero(t, dlpack.Drain())

	dlpacktest.NewCell(1).Release()
	require.Equal(t, pokes+2, dlpacktest.Pokes(), "after a drain the next one asks again")
	require.Equal(t, 1, dlpack.Drain())
}

func TestReleaseOnForeignThreads(t *testing.T) {
	released := dlpacktest.Released()
	c := dlpacktest.NewCell(1)
	for range 31 {
		c.Retain()
	}
	require.True(t, c.ReleaseOnThreads(32))
	require.Equal(t, 1, dlpack.Drain())
	require.Equal(t, released+1, dlpacktest.Released())
}

// Goroutines drop cells while another drains: each cell must come out once.
func TestDropStackUnderContention(t *testing.T) {
	const workers, each = 4, 5000
	released := dlpacktest.Released()
	var drained atomic.Int64
	var dropping sync.WaitGroup
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			drained.Add(int64(dlpack.Drain()))
			select {
			case <-stop:
				drained.Add(int64(dlpack.Drain()))
				return
			default:
			}
		}
	}()
	for range workers {
		dropping.Go(func() {
			for range each {
				c := dlpacktest.NewCell(8)
				c.Retain()
				c.Release()
				c.Release()
			}
		})
	}
	dropping.Wait()
	close(stop)
	<-done
	require.EqualValues(t, workers*each, drained.Load())
	require.Equal(t, released+workers*each, dlpacktest.Released())
}
