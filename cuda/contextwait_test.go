// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A wait that lets a call go first is not in the driver, however long it does.
func TestCaptureBeginsWhileAWaitLetsACallGoFirst(t *testing.T) {
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	require.True(t, c.drv.waits.beginGap())
	end := sync.OnceFunc(c.drv.waits.endGap)
	defer end()
	waited := make(chan error)
	go func() { waited <- c.Synchronize() }()
	time.Sleep(entered + 50*time.Millisecond)
	require.NoError(t, s.BeginCapture(CaptureRelaxed))
	end()
	require.ErrorIs(t, <-waited, ErrorStreamCaptureUnsupported)
	g, err := s.EndCapture()
	require.NoError(t, err, "the capture is valid")
	require.NoError(t, c.GraphDestroy(g))
}

func TestReleaseGoesBetweenWaitsThatFollowWithoutAGap(t *testing.T) {
	for _, each := range []time.Duration{2 * time.Millisecond, 100 * time.Millisecond} {
		t.Run(each.String(), func(t *testing.T) { releasesBetweenWaits(t, each) })
	}
}

func releasesBetweenWaits(t *testing.T, each time.Duration) {
	var w contextWaits
	var stop atomic.Bool
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for !stop.Load() {
				end := w.begin()
				time.Sleep(each)
				end()
			}
		})
	}
	tryOnce := func() bool {
		return w.tryApart(func() driver.CUresult { return driver.CUDA_SUCCESS }) == driver.CUDA_SUCCESS
	}
	for range 3 {
		require.Eventually(t, tryOnce, 10*time.Second, time.Millisecond)
	}
	stop.Store(true)
	all.Wait()
}

// What a wait under way waits for may follow the new one.
func TestWaitGoesOnBesideOneThatTakesLong(t *testing.T) {
	var w contextWaits
	long := w.begin()
	var stop atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for !stop.Load() {
			w.tryApart(func() driver.CUresult { return driver.CUDA_SUCCESS })
		}
	})
	for range 3 {
		w.begin()()
	}
	stop.Store(true)
	all.Wait()
	long()
}
