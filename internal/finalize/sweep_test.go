// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func always(round func()) bool { round(); return true }

func TestOneRoundServesAllWhoAsk(t *testing.T) {
	r := NewReaper(ReaperOptions{})
	defer r.Stop(patience)
	var open atomic.Bool
	var rounds atomic.Int64
	s := NewSweep(r, func(round func()) bool {
		if !open.Load() {
			return false
		}
		round()
		return true
	}, func() { rounds.Add(1) })
	for range 100 {
		s.Ask()
	}
	require.Equal(t, 1, r.Pending())
	require.False(t, r.Flush(5*time.Millisecond)) // it was not its turn
	require.Zero(t, rounds.Load())
	open.Store(true)
	require.True(t, r.Flush(patience))
	require.Equal(t, int64(1), rounds.Load())
	s.Ask()
	require.True(t, r.Flush(patience))
	require.Equal(t, int64(2), rounds.Load())
}

// A hundred items that ask in each round, as long as they have to wait.
func TestWhatIsPostponedAgainAsksForOneRound(t *testing.T) {
	r := NewReaper(ReaperOptions{})
	defer r.Stop(patience)
	var over atomic.Bool
	var began []time.Time
	var most int
	var s *Sweep
	s = NewSweep(r, always, func() {
		began = append(began, time.Now())
		for range 100 {
			if !over.Load() {
				s.Ask()
			}
		}
		most = max(most, r.Pending())
	})
	s.Ask()
	time.Sleep(20 * time.Millisecond)
	over.Store(true)
	require.True(t, r.Flush(patience))
	require.LessOrEqual(t, most, 2) // the round itself, and the next
	for i := 1; i < len(began); i++ {
		require.GreaterOrEqual(t, began[i].Sub(began[i-1]), sweepPause)
	}
}

func TestPauseGrowsWithTheRound(t *testing.T) {
	r := NewReaper(ReaperOptions{})
	s := NewSweep(r, always, func() {})
	r.running = true // as if: nothing steps what is added
	next := func(took time.Duration) time.Duration {
		s.took.Store(int64(took))
		s.underWay.Store(true)
		defer s.underWay.Store(false)
		s.ahead.Store(false)
		s.Ask()
		return r.added[len(r.added)-1].(*sweeping).pause
	}
	require.Equal(t, sweepPause, next(0))
	require.Equal(t, 5*time.Millisecond, next(500*time.Microsecond))
	require.Equal(t, sweepPauseMax, next(time.Second))
}

// Who asks while a round is under way may have come too late for it.
func TestAskedDuringARoundIsServedByTheNext(t *testing.T) {
	r := NewReaper(ReaperOptions{})
	defer r.Stop(patience)
	in, ask := make(chan struct{}), make(chan struct{})
	var rounds atomic.Int64
	var once sync.Once
	s := NewSweep(r, always, func() {
		rounds.Add(1)
		once.Do(func() { close(in); <-ask })
	})
	s.Ask()
	<-in
	s.Ask()
	close(ask)
	require.True(t, r.Flush(patience))
	require.Equal(t, int64(2), rounds.Load())
}

func TestPanicOfARoundIsReportedAndNotTheLast(t *testing.T) {
	var told atomic.Int64
	r := NewReaper(ReaperOptions{Report: func(error) { told.Add(1) }})
	defer r.Stop(patience)
	var rounds atomic.Int64
	s := NewSweep(r, always, func() {
		if rounds.Add(1) == 1 {
			panic("first")
		}
	})
	s.Ask()
	require.True(t, r.Flush(patience))
	s.Ask()
	require.True(t, r.Flush(patience))
	require.Equal(t, int64(1), told.Load())
	require.Equal(t, int64(2), rounds.Load())
}
