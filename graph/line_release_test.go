// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// Who looks at all lines may come to one that has ended meanwhile, and reads its
// counters: their memory is there until nobody has the line any more.
func TestCountersOutliveTheirLine(t *testing.T) {
	ctx := open(t)
	s, err := ctx.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	g := newGate(t)
	released, ended := make(chan struct{}), make(chan struct{})
	l, err := NewLine(s, LineOptions{Release: func() { close(released) }})
	require.NoError(t, err)
	require.NoError(t, s.LaunchHostFunc(g.Fn, g.UserData))
	l.Advance()
	snapshot := pendingLines()
	require.Contains(t, snapshot, l)
	g.open()
	l.Close(func() error {
		defer close(ended)
		return s.Close()
	})
	<-ended
	s, l = nil, nil

	for range 5 {
		runtime.GC()
		select {
		case <-released:
			t.Fatal("the counters went while somebody was about to look at the line")
		default:
		}
	}
	for _, l := range snapshot { // its last use: then nobody has the line
		l.prove(true, asker(nil)) // has nothing to ask
	}
	eventually(t, "released", func() bool {
		runtime.GC()
		select {
		case <-released:
			return true
		default:
			return false
		}
	})
}
