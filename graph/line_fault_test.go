// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build cudagotest

package graph

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// Here the model of a line runs with driver calls that fail.
func init() {
	armFault = func(d *cuda.Driver, rnd *rand.Rand) {
		calls := []string{"cuEventRecord", "cuEventQuery", "cuStreamIsCapturing", "cuEventCreate"}
		d.FailCall(calls[rnd.IntN(len(calls))], 1+rnd.IntN(2), cuda.ErrorOutOfMemory)
	}
	disarmFaults = func(d *cuda.Driver, _ *rand.Rand) { d.ClearFaults() }
}

// A device that has failed for good runs nothing any more: whichever call says
// so, all is proven.
func TestFailedDeviceProvesEverything(t *testing.T) {
	for _, call := range []string{"cuEventRecord", "cuEventQuery", "cuStreamIsCapturing"} {
		for name, ask := range map[string]func(*Line){
			"Mark":   func(l *Line) { _ = l.Mark() },
			"Prove":  (*Line).Prove,
			"Marked": func(l *Line) { _, _ = l.Marked() },
			"After":  func(*Line) {}, // the reaper asks
			"Close":  func(l *Line) { l.Close(nil) },
		} {
			t.Run(call+"/"+name, func(t *testing.T) {
				ctx := open(t)
				failing.Store(true)
				s := newStream(t, ctx)
				gate := newGate(t)
				l, err := NewLine(s, LineOptions{})
				require.NoError(t, err)
				require.NoError(t, s.LaunchHostFunc(gate.Fn, gate.UserData))
				<-gate.entered
				pos := l.Advance()
				if call == "cuEventQuery" || call == "cuStreamIsCapturing" && name == "After" {
					require.NoError(t, l.Mark())
					l.Advance() // so that a mark is still missing
					pos++
				}
				require.True(t, l.Pending(pos))
				ctx.Driver().FailCall(call, 1, cuda.ErrorIllegalAddress)
				ended := make(chan struct{})
				ask(l)
				l.After(pos, func() { close(ended) })
				<-ended
				require.False(t, l.Pending(pos))
				gate.open()
			})
		}
	}
}

// An error that says nothing about the work is reported once, and proves nothing.
func TestOtherErrorsProveNothing(t *testing.T) {
	ctx := open(t)
	failing.Store(true)
	var warnings []error
	OnWarning(func(err error) { warnings = append(warnings, err) })
	s := newStream(t, ctx)
	gate := newGate(t)
	l, err := NewLine(s, LineOptions{})
	require.NoError(t, err)
	require.NoError(t, s.LaunchHostFunc(gate.Fn, gate.UserData))
	pos := l.Advance()
	drv := ctx.Driver()
	drv.FailCall("cuEventRecord", 1, cuda.ErrorOutOfMemory)
	require.ErrorIs(t, l.Mark(), cuda.ErrorOutOfMemory)
	require.Zero(t, l.marked.Load())
	require.NoError(t, l.Mark())
	for range 3 {
		drv.FailCall("cuEventQuery", 1, cuda.ErrorOutOfMemory)
		l.Prove()
	}
	require.Len(t, warnings, 1)
	require.ErrorIs(t, warnings[0], cuda.ErrorOutOfMemory)
	require.True(t, l.Pending(pos))
	l.Prove()
	drv.FailCall("cuEventQuery", 1, cuda.ErrorOutOfMemory)
	l.Prove()
	require.Len(t, warnings, 2, "it was over in between")
	gate.open()
	require.NoError(t, s.Synchronize())
	l.Prove()
	require.False(t, l.Pending(pos))
}

// Work in a stream whose handle others have does not stay pending forever if its
// mark fails and nobody uses the stream again.
func TestUnmarkedWorkOfAnExposedStream(t *testing.T) {
	ctx := open(t)
	failing.Store(true)
	s, gate := newStream(t, ctx), newGate(t)
	l, err := NewLine(s, LineOptions{})
	require.NoError(t, err)
	l.Expose()
	require.NoError(t, s.LaunchHostFunc(gate.Fn, gate.UserData))
	<-gate.entered
	pos, ended := l.Advance(), make(chan struct{})
	ctx.Driver().FailCall("cuEventRecord", 1, cuda.ErrorOutOfMemory)
	require.ErrorIs(t, l.Mark(), cuda.ErrorOutOfMemory)
	l.After(pos, func() { close(ended) })
	steps(t)
	require.Zero(t, l.marked.Load())
	require.True(t, l.Pending(pos))
	gate.open()
	<-ended
	require.NoError(t, s.Synchronize())
}

// unmarked queues work behind which neither an event nor a synchronization can
// stand, and which ends when the gate is opened.
func unmarked(t *testing.T) (s *cuda.Stream, l *Line, pos uint64, gate *hostGate) {
	ctx := open(t)
	failing.Store(true)
	s = ctx.WrapStream(newStream(t, ctx).Handle())
	gate, l = newGate(t), LineOf(s)
	require.NoError(t, s.LaunchHostFunc(gate.Fn, gate.UserData))
	<-gate.entered
	ctx.Driver().FailCall("cuEventRecord", 1, cuda.ErrorOutOfMemory)
	ctx.Driver().FailCall("cuStreamSynchronize", 1, cuda.ErrorOutOfMemory)
	pos, err := l.Marked()
	require.NoError(t, err)
	return s, l, pos, gate
}

// Behind a launch of which neither an event nor a synchronization can tell the
// end, the next mark does.
func TestUnmarkedWorkIsCoveredByTheNextMark(t *testing.T) {
	s, l, pos, gate := unmarked(t)
	require.Zero(t, l.marked.Load())
	ended := make(chan struct{})
	l.After(pos, func() { close(ended) })
	steps(t)
	require.True(t, l.Pending(pos))
	require.NoError(t, l.Mark())
	require.Equal(t, pos, l.marked.Load())
	gate.open()
	<-ended
	require.NoError(t, s.Close())
}

// Work does not stay pending forever either if no mark follows it, because the
// stream was closed and its last mark failed.
func TestUnmarkedWorkOfAClosedStream(t *testing.T) {
	s, l, pos, gate := unmarked(t)
	ended, closed := make(chan struct{}), make(chan struct{})
	l.After(pos, func() { close(ended) })
	drv := s.Context().Driver()
	drv.FailCall("cuEventRecord", 1, cuda.ErrorOutOfMemory)
	l.Close(func() error { close(closed); return nil })
	require.False(t, drv.ClearFaults())
	steps(t)
	require.True(t, l.Pending(pos))
	gate.open()
	<-ended
	<-closed
	require.NoError(t, s.Close())
}
