// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what must happen; nothing depends on
// how soon it does.
const patience = 30 * time.Second

type stepFunc func() (bool, error)

func (f stepFunc) Step() (bool, error) { return f() }

func TestUnusedReaperStartsNothing(t *testing.T) {
	r := NewReaper(ReaperOptions{ThreadInit: func() error { t.Error("started"); return nil }})
	require.True(t, r.Flush(0))
	require.Zero(t, r.Pending())
	require.Zero(t, r.Stop(patience))
	require.False(t, r.running)
}

func TestReaperStepsUntilDone(t *testing.T) {
	var inits, steps atomic.Int64
	r := NewReaper(ReaperOptions{ThreadInit: func() error { inits.Add(1); return nil }})
	defer r.Stop(patience)
	for range 3 {
		left := 4
		require.True(t, r.Add(stepFunc(func() (bool, error) {
			left--
			steps.Add(1)
			return left == 0, nil
		})))
	}
	require.True(t, r.Flush(patience))
	require.Equal(t, int64(12), steps.Load())
	require.Equal(t, int64(1), inits.Load())
	require.Zero(t, r.Pending())
}

func TestReaperHasNoHeadOfLineBlocking(t *testing.T) {
	r := NewReaper(ReaperOptions{})
	defer r.Stop(patience)
	var open atomic.Bool
	r.Add(stepFunc(func() (bool, error) { return open.Load(), nil }))
	done := make(chan struct{})
	r.Add(stepFunc(func() (bool, error) { close(done); return true, nil }))
	<-done
	require.False(t, r.Flush(time.Millisecond))
	require.Equal(t, 1, r.Pending())
	open.Store(true)
	require.True(t, r.Flush(patience))
}

// Items put nothing off while somebody waits for them.
func TestFlushHurries(t *testing.T) {
	r := NewReaper(ReaperOptions{})
	defer r.Stop(patience)
	r.Add(stepFunc(func() (bool, error) { return r.Hurried(), nil }))
	require.False(t, r.Hurried())
	require.True(t, r.Flush(patience))
	stuck := make(chan struct{})
	r.Add(stepFunc(func() (bool, error) { <-stuck; return true, nil }))
	require.False(t, r.Flush(time.Millisecond))
	require.False(t, r.Hurried(), "nobody waits any more")
	over := r.Hurry()
	require.True(t, r.Hurried())
	over()
	require.False(t, r.Hurried())
	close(stuck)
}

func TestReaperReportsErrorsAndPanics(t *testing.T) {
	reports := make(chan error, 4)
	broken := errors.New("broken")
	r := NewReaper(ReaperOptions{
		ThreadInit: func() error { return errors.New("init") },
		Report:     func(err error) { reports <- err },
	})
	defer r.Stop(patience)
	tries := 0
	r.Add(stepFunc(func() (bool, error) {
		tries++
		if tries == 1 {
			return false, broken
		}
		return true, nil
	}))
	require.ErrorContains(t, <-reports, "init")
	require.ErrorIs(t, <-reports, broken)
	require.True(t, r.Flush(patience))
	require.Equal(t, 2, tries)

	r.Add(stepFunc(func() (bool, error) { panic("oh") }))
	require.ErrorContains(t, <-reports, "panic in the reaper: oh")
	require.True(t, r.Flush(patience))
}

func TestStoppedReaperRefusesItems(t *testing.T) {
	r := NewReaper(ReaperOptions{})
	stepped := make(chan struct{}, 1)
	r.Add(stepFunc(func() (bool, error) {
		select {
		case stepped <- struct{}{}:
		default:
		}
		return false, nil
	}))
	<-stepped
	require.Equal(t, 1, r.Stop(patience))
	require.False(t, r.Add(stepFunc(func() (bool, error) { return true, nil })))
	require.Equal(t, 1, r.Stop(patience))
	select {
	case <-r.ended:
	default:
		t.Fatal("goroutine still there")
	}
}

func TestReaperItemsMayAddItems(t *testing.T) {
	r := NewReaper(ReaperOptions{})
	defer r.Stop(patience)
	var ran atomic.Bool
	r.Add(stepFunc(func() (bool, error) {
		r.Add(stepFunc(func() (bool, error) { ran.Store(true); return true, nil }))
		return true, nil
	}))
	require.True(t, r.Flush(patience))
	require.True(t, ran.Load())
}

func TestReaperHammer(t *testing.T) {
	r := NewReaper(ReaperOptions{})
	defer r.Stop(patience)
	const workers, each = 8, 300
	var done atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				left := (i + w) % 3
				r.Add(stepFunc(func() (bool, error) {
					if left--; left < 0 {
						done.Add(1)
						return true, nil
					}
					return false, nil
				}))
				if i%50 == 0 {
					r.Flush(time.Microsecond)
				}
			}
		})
	}
	wg.Wait()
	require.True(t, r.Flush(patience))
	require.Equal(t, int64(workers*each), done.Load())
}

// A stander has as much to do as busy says, and takes it when it is stepped.
type stander struct {
	busy, steps atomic.Int64
	rest        time.Duration
	over        atomic.Bool
}

func (s *stander) Step() (bool, error) {
	s.steps.Add(1)
	s.busy.Store(0)
	return s.over.Load(), nil
}
func (s *stander) Busy() bool              { return s.busy.Load() > 0 }
func (s *stander) Patience() time.Duration { return s.rest }

func TestStandingItemIsPendingWhileItIsBusy(t *testing.T) {
	r := NewReaper(ReaperOptions{})
	defer r.Stop(patience)
	s := &stander{rest: time.Hour}
	require.True(t, r.Add(s))
	require.Eventually(t, func() bool { return s.steps.Load() > 2 }, patience, time.Millisecond)
	require.Eventually(t, func() bool { return r.Pending() == 0 }, patience, time.Millisecond, "though it stays")
	require.True(t, r.Flush(patience))
	time.Sleep(20 * time.Millisecond) // it polls slower and slower
	s.busy.Store(1)
	require.Equal(t, 1, r.Pending())
	require.False(t, r.Flush(0), "which has it looked at")
	require.True(t, r.Flush(patience))
	require.Zero(t, s.busy.Load())
	s.over.Store(true)
	r.Wake()
	require.Eventually(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.standing) == 0 }, patience, time.Millisecond)
}

// What a Standing item has taken and given to nobody yet is pending too.
func TestStandingItemIsPendingInItsStep(t *testing.T) {
	r := NewReaper(ReaperOptions{})
	defer r.Stop(patience)
	inside, open := make(chan struct{}), make(chan struct{})
	s := &slowStander{step: func() { close(inside); <-open }}
	require.True(t, r.Add(s))
	<-inside
	require.Equal(t, 1, r.Pending())
	require.False(t, r.Flush(time.Millisecond))
	close(open)
	require.True(t, r.Flush(patience))
}

type slowStander struct {
	stander
	step func()
}

func (s *slowStander) Step() (bool, error) {
	s.step()
	return true, nil
}

// Beside an item that cannot wait, the others do not slow the reaper down.
func TestLongest(t *testing.T) {
	slow, slower := &stander{rest: time.Second}, &stander{rest: time.Minute}
	require.Equal(t, time.Second, longest([]Item{slower, slow}))
	require.Equal(t, pollMax, longest([]Item{slower, stepFunc(nil)}))
}
