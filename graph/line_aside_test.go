// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// An ended work has ended, and is marked. The driver looks for races and has not
// been asked.
type ended struct {
	*Line
	s   *cuda.Stream
	pos uint64
}

func newEnded(t *testing.T, shared bool) *ended {
	ctx := open(t)
	_, err := ctx.Driver().SetChecks("races")
	require.NoError(t, err)
	w := &ended{s: newStream(t, ctx)}
	on := w.s
	if shared {
		on = ctx.WrapStream(w.s.Handle())
		t.Cleanup(func() { _ = on.Close() })
	}
	w.Line = LineOf(on)
	require.NoError(t, w.s.LaunchHostFunc(hostFunc(func() {}).Fn, 0))
	w.pos, err = w.Marked()
	require.NoError(t, err)
	after, err := ctx.NewEvent(cuda.EventOptions{Timing: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = after.Close() })
	require.NoError(t, w.s.Record(after))
	eventually(t, "the stream has come past the mark", func() bool {
		_, err := after.ElapsedMS(after) // counts as no wait
		return err == nil
	})
	return w
}

// While races are looked for, what nobody has asked for finds out nothing: the
// driver would take it for a wait of the program.
func TestUpkeepDoesNotWaitForTheProgram(t *testing.T) {
	for name, shared := range map[string]bool{"own": false, "shared": true} {
		for by, ask := range map[string]func(*ended){
			"waiting for the stream": func(w *ended) { require.NoError(t, w.s.Synchronize()) },
			"asking the line":        func(w *ended) { w.Prove() },
			"asking all lines":       func(*ended) { ProveAll() },
			"the reaper's flush":     func(*ended) { require.True(t, Reaper().Flush(patience)) },
			"the end of the check": func(w *ended) {
				_, err := w.s.Context().Driver().SetChecks("")
				require.NoError(t, err)
			},
			"time": func(*ended) {},
		} {
			t.Run(name+"/"+by, func(t *testing.T) {
				w := newEnded(t, shared)
				released := make(chan struct{})
				w.After(w.pos, func() { close(released) })
				steps(t)
				LookAll()
				ProveAllAside()
				w.ProveAside()
				require.True(t, w.Pending(w.pos))
				ask(w)
				<-released
			})
		}
	}
}

// A mark that is made meanwhile asks for no other.
func TestMarkedDoesNotWaitForTheProgram(t *testing.T) {
	w := newEnded(t, true)
	_, err := w.Marked()
	require.NoError(t, err)
	require.True(t, w.Pending(w.pos))
	require.NoError(t, w.s.Synchronize())
	w.ProveAside()
	require.False(t, w.Pending(w.Queued()))
}
