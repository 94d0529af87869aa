// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Who has waited for work finds nothing held for it, also where another thread
// is about to release that.
func TestSettleWaitsForReleasesUnderWay(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	l, err := NewLine(s, LineOptions{})
	require.NoError(t, err)
	require.NoError(t, s.LaunchHostFunc(hostFunc(func() {}).Fn, 0))
	pos := l.Advance()
	require.NoError(t, s.Synchronize())

	begun, goOn := make(chan struct{}), make(chan struct{})
	released := false
	l.After(pos, func() { // on the reaper
		close(begun)
		<-goOn
		released = true
	})
	<-begun
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		l.Settle()
	}()
	select {
	case <-settled:
		t.Fatal("settled before the release was over")
	default:
	}
	close(goOn)
	<-settled
	require.True(t, released)
}

// What is moved to the line meanwhile is waited for as well.
func TestSettleWaitsForWhatIsMoved(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	l, err := NewLine(s, LineOptions{})
	require.NoError(t, err)
	begun, goOn := make(chan struct{}), make(chan struct{})
	released := false
	go l.Moving(func() {
		close(begun)
		<-goOn
		l.After(l.Proven(), func() { released = true })
	})
	<-begun
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		l.Settle()
	}()
	close(goOn)
	<-settled
	require.True(t, released)
}

// Who waits does not depend on the reaper, which may be inside the driver.
func TestSettleReleasesWithoutTheReaper(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	l, err := NewLine(s, LineOptions{})
	require.NoError(t, err)
	gate := newGate(t)
	require.NoError(t, s.LaunchHostFunc(gate.Fn, gate.UserData))
	pos := l.Advance()
	busy, goOn := make(chan struct{}), make(chan struct{})
	require.True(t, l.reaper.Add(ending(func() error { close(busy); <-goOn; return nil })))
	<-busy
	defer close(goOn)
	released := false
	l.After(pos, func() { released = true })
	gate.open()
	require.NoError(t, s.Synchronize())
	l.Waited(pos)
	l.Settle()
	require.True(t, released)
}
