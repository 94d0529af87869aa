// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// waits waits until so many launches and changes wait at g.
func (g *gate) waits(t *testing.T, launches, changes int) {
	t.Helper()
	eventually(t, "waiting at the gate", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.queued == launches && g.changes == changes
	})
}

func TestGateKeepsChangesAlone(t *testing.T) {
	var g gate
	g.enter()
	g.enter() // launches go in together
	require.True(t, g.busy())
	var changed atomic.Bool
	done := make(chan struct{})
	go func() {
		leave := g.change()
		changed.Store(true)
		leave()
		close(done)
	}()
	g.waits(t, 0, 1)
	g.leave()
	g.waits(t, 0, 1)
	require.False(t, changed.Load())
	g.leave()
	<-done
	require.True(t, changed.Load())
	require.False(t, g.busy())
}

// A caller that arrives while a change waits enters after that change and
// before the next, whichever of them wakes up first.
func TestGateIsFair(t *testing.T) {
	for range 200 {
		fairRound(t)
	}
}

func fairRound(t *testing.T) {
	var g gate
	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	var wg sync.WaitGroup
	change := func(what string) {
		wg.Go(func() {
			leave := g.change()
			note(what)
			leave()
		})
	}
	launch := func() {
		wg.Go(func() {
			g.enter()
			note("launch")
			g.leave()
		})
	}
	g.enter()
	change("change")
	g.waits(t, 0, 1)
	launch()
	launch()
	g.waits(t, 2, 1)
	change("change")
	g.waits(t, 2, 2)
	launch()
	g.waits(t, 3, 2)
	g.leave()
	wg.Wait()
	require.Equal(t, []string{"change", "launch", "launch", "launch", "change"}, order)
}

// Neither side starves the other, however fast it comes.
func TestGateHammer(t *testing.T) {
	var g gate
	const each = 2000
	inside, changes := 0, 0 // guarded by the gate: the race detector looks on
	var launches atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range each {
				g.enter()
				launches.Add(int64(1 + 0*changes))
				g.leave()
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range each {
				leave := g.change()
				inside++
				changes++
				runtime.Gosched()
				if inside != 1 {
					t.Error("two changes at once")
				}
				inside--
				leave()
			}
		})
	}
	wg.Wait()
	require.Equal(t, 2*each, changes)
	require.Equal(t, int64(4*each), launches.Load())
	require.False(t, g.busy())
}
