// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFinalizerRunsOnce(t *testing.T) {
	r := NewRegistry(nil)
	ran := 0
	f := r.Add(func() error { ran++; return nil }, "info")
	require.True(t, f.Alive())
	info, alive := f.Peek()
	require.Equal(t, "info", info)
	require.True(t, alive)
	require.Equal(t, 1, r.Len())

	require.True(t, f.Call())
	require.False(t, f.Call())
	require.Equal(t, 1, ran)
	require.False(t, f.Alive())
	info, alive = f.Peek()
	require.Nil(t, info)
	require.False(t, alive)
	require.Zero(t, r.Len())
	require.Zero(t, r.Shutdown())
	require.Equal(t, 1, ran)
}

func TestDetachedFinalizerNeverRuns(t *testing.T) {
	r := NewRegistry(nil)
	f := r.Add(func() error { t.Error("ran"); return nil }, 7)
	info, detached := f.Detach()
	require.True(t, detached)
	require.Equal(t, 7, info)
	_, detached = f.Detach()
	require.False(t, detached)
	require.False(t, f.Call())
	require.Zero(t, r.Shutdown())
}

func TestShutdownRunsNewestFirst(t *testing.T) {
	r := NewRegistry(nil)
	var order []uint64
	add := func() *Finalizer {
		var f *Finalizer
		f = r.Add(func() error { order = append(order, f.ID()); return nil }, nil)
		return f
	}
	for range 5 {
		add()
	}
	// Number 6 adds 7 while it runs: 7 is newer than 5 and comes before it.
	r.Add(func() error { add(); order = append(order, 6); return nil }, nil)
	require.Equal(t, 7, r.Shutdown())
	require.Equal(t, []uint64{6, 7, 5, 4, 3, 2, 1}, order)
}

func TestShutdownHonoursAtExit(t *testing.T) {
	r := NewRegistry(nil)
	var order []string
	add := func(name string) *Finalizer {
		return r.Add(func() error { order = append(order, name); return nil }, nil)
	}
	a := add("a")
	b := add("b")
	c := add("c")
	add("d")
	for _, f := range []*Finalizer{a, b, c} {
		require.True(t, f.AtExit())
		f.SetAtExit(false)
		require.False(t, f.AtExit())
	}
	c.SetAtExit(true)
	add("e")
	require.Equal(t, 3, r.Shutdown())
	require.Equal(t, []string{"e", "d", "c"}, order)
	require.True(t, a.Alive())
	require.True(t, b.Alive())
	require.Equal(t, 2, r.Len())
}

// weakref.finalize looks at the flags when it begins and after a registration.
func TestAtExitSetWhileShuttingDown(t *testing.T) {
	for _, adds := range []bool{false, true} {
		r := NewRegistry(nil)
		var order []string
		add := func(name string) *Finalizer {
			return r.Add(func() error { order = append(order, name); return nil }, nil)
		}
		off := add("set off")
		on := add("set on")
		on.SetAtExit(false)
		r.Add(func() error {
			off.SetAtExit(false)
			on.SetAtExit(true)
			if adds {
				add("added")
			}
			order = append(order, "setter")
			return nil
		}, nil)
		r.Shutdown()
		if adds {
			require.Equal(t, []string{"setter", "added", "set on"}, order)
		} else {
			require.Equal(t, []string{"setter", "set off"}, order)
		}
	}
}

func TestShutdownStops(t *testing.T) {
	var reports []error
	r := NewRegistry(func(err error) { reports = append(reports, err) })
	left := r.Add(func() error { t.Error("ran"); return nil }, nil)
	r.Add(func() error { return ErrStop }, nil)
	require.Equal(t, 1, r.Shutdown())
	require.Empty(t, reports)
	require.True(t, left.Alive())
	require.False(t, left.Call())
}

func TestAfterShutdownNothingRuns(t *testing.T) {
	r := NewRegistry(nil)
	kept := r.Add(func() error { t.Error("ran"); return nil }, nil)
	kept.SetAtExit(false)
	r.Shutdown()
	require.True(t, kept.Alive())
	require.False(t, kept.Call())
	require.False(t, kept.Alive())
}

func TestFailuresAreReported(t *testing.T) {
	var reports []error
	r := NewRegistry(func(err error) { reports = append(reports, err) })
	cause := errors.New("cause")
	r.Add(func() error { return cause }, nil)
	r.Add(func() error { panic("oh") }, nil)
	ran := false
	r.Add(func() error { ran = true; return nil }, nil)
	require.Equal(t, 3, r.Shutdown())
	require.True(t, ran)
	require.Len(t, reports, 2)
	require.ErrorContains(t, reports[0], "panic in finalizer 2: oh")
	require.ErrorIs(t, reports[1], cause)
	require.ErrorContains(t, reports[1], "finalizer 1: cause")
}

func TestFinalizerMayUseItsRegistry(t *testing.T) {
	r := NewRegistry(nil)
	var other *Finalizer
	f := r.Add(func() error {
		other.Detach()
		r.Add(func() error { return nil }, nil)
		return nil
	}, nil)
	other = r.Add(func() error { return nil }, nil)
	require.True(t, f.Call())
	require.Equal(t, 1, r.Len())
}

// Shutdown has to look at each finalizer a bounded number of times, also at
// those that it must not run.
func TestShutdownLooksOnce(t *testing.T) {
	r := NewRegistry(nil)
	const n = 50_000 // quadratic would be 2.5e9 steps
	ran := 0
	for i := range n {
		f := r.Add(func() error { ran++; return nil }, nil)
		f.SetAtExit(i%2 == 0)
	}
	require.Equal(t, n/2, r.Shutdown())
	require.Equal(t, n/2, ran)
	require.Equal(t, n/2, r.Len())
}

func TestRegistryHammer(t *testing.T) {
	var reports atomic.Int64
	r := NewRegistry(func(error) { reports.Add(1) })
	const workers, each = 8, 500
	var ran, detached atomic.Int64
	var wg sync.WaitGroup
	all := make([][]*Finalizer, workers)
	for w := range workers {
		wg.Go(func() {
			for range each {
				all[w] = append(all[w], r.Add(func() error { ran.Add(1); return nil }, w))
			}
		})
	}
	wg.Wait()
	every := slices.Concat(all...)
	for w := range workers {
		wg.Go(func() {
			for i, f := range every {
				switch {
				case w == 0:
					r.Shutdown()
					return
				case (i+w)%3 == 0:
					if _, ok := f.Detach(); ok {
						detached.Add(1)
					}
				case (i+w)%3 == 1:
					f.Call()
				default:
					f.SetAtExit(i%2 == 0)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, reports.Load())
	require.Zero(t, r.Len())
	// Those called after Shutdown are taken without running.
	require.LessOrEqual(t, ran.Load()+detached.Load(), int64(workers*each))
	require.NotZero(t, ran.Load())
}
