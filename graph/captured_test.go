// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// allocIn captures an allocation of 8 bytes in s; ends collects what has become
// of it.
func allocIn(t testing.TB, c *Capture, s *cuda.Stream, ends *[]bool) *CapturedMemory {
	t.Helper()
	mr, err := s.Context().Device().DefaultMemoryResource()
	require.NoError(t, err)
	m, err := c.Alloc(s, 8, 7, func(isGraph bool) { *ends = append(*ends, isGraph) }, func() (uint64, error) {
		return mr.AllocateNode(8, s)
	})
	require.NoError(t, err)
	require.NotZero(t, m.Ptr())
	return m
}

// fillIn captures a fill of m in s.
func fillIn(c *Capture, s *cuda.Stream, m *CapturedMemory, name string) error {
	p := cuda.MemsetParams{Dst: m.Ptr(), Value: 7, ElementSize: 1, Count: 8}
	return c.Record(s, Operation{Name: name, Params: p, Operands: []Operand{{Name: "dst", Memory: m}}}, func() error {
		return cuda.Memset(p.Dst, p.Value, 1, p.Count, s)
	})
}

func TestCapturedMemory(t *testing.T) {
	ctx := open(t)
	s, b := newStream(t, ctx), buffers(t, ctx, 1, 8)
	var ends []bool
	c := begin(t, s, Options{})
	m := allocIn(t, c, s, &ends)
	require.NoError(t, fillIn(c, s, m, "fill"))
	p := cuda.MemcpyParams{Dst: b[0].Ptr(), Src: m.Ptr(), Size: 8}
	require.NoError(t, c.Record(s, Operation{Params: p}, func() error { return cuda.Memcpy(p.Dst, p.Src, p.Size, s) }))
	require.NoError(t, c.Free(m, nil, nil, 0))
	require.ErrorIs(t, c.Free(m, nil, nil, 0), cuda.ErrClosed)
	require.ErrorIs(t, fillIn(c, s, m, ""), cuda.ErrClosed)
	require.Empty(t, ends)
	g, err := c.End()
	require.NoError(t, err)
	require.Equal(t, []bool{true}, ends)
	require.Equal(t, AllocParams{m.Ptr(), 8, 0, UnknownPeers}, g.Node("alloc_0").Params())
	require.Equal(t, FreeParams{m.Ptr()}, g.Node("free_0").Params())
	require.Equal(t, []*Node{g.Node("memcpy_0")}, g.Node("free_0").Dependencies())
	x := instantiate(t, g, ExecOptions{})
	for range 2 {
		require.NoError(t, x.Launch(s))
		require.NoError(t, s.Synchronize())
		require.False(t, isAllocated(t, ctx, m.Ptr()))
	}
	require.EqualValues(t, 7, b[0].Bytes()[7])
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
	m.Release()
}

// What the capture does not free is as memory of any other alloc node.
func TestCapturedMemoryThatIsNotFreed(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	var ends []bool
	c := begin(t, s, Options{})
	m := allocIn(t, c, s, &ends)
	g, err := c.End()
	require.NoError(t, err)
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, x.Launch(s))
	require.ErrorIs(t, x.Launch(s), cuda.ErrorInvalidValue)
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
	require.True(t, Reaper().Flush(patience))
	require.True(t, isAllocated(t, ctx, m.Ptr()), "somebody holds it")
	m.Release()
	require.True(t, Reaper().Flush(patience))
	require.False(t, isAllocated(t, ctx, m.Ptr()))
	require.Panics(t, m.Release)
}

// While nobody knows whether there will be a graph, nothing else uses the memory.
func TestCapturedMemoryElsewhere(t *testing.T) {
	ctx := open(t)
	s, other := newStream(t, ctx), newStream(t, ctx)
	var ends []bool
	c := begin(t, s, Options{})
	m := allocIn(t, c, s, &ends)
	t.Cleanup(m.Release)
	use := []Operand{{Name: "dst", Memory: m}}
	p := cuda.MemsetParams{Dst: m.Ptr(), Value: 7, ElementSize: 1, Count: 8}
	g := newTestGraph(t, ctx, Options{})
	n, err := g.Memset(cuda.MemsetParams{Dst: buffers(t, ctx, 1, 8)[0].Ptr(), ElementSize: 1, Count: 8}, NodeOptions{})
	require.NoError(t, err)
	x := instantiate(t, g, ExecOptions{})
	d := begin(t, other, Options{})
	elsewhere := map[string]func() error{
		"node":      func() error { _, err := g.Memset(p, NodeOptions{Operands: use}); return err },
		"update":    func() error { return n.UpdateMemset(p, use) },
		"exec node": func() error { return x.Node("memset_0").UpdateMemset(p, use) },
		"capture":   func() error { return fillIn(d, other, m, "") },
	}
	for name, call := range elsewhere {
		require.ErrorContains(t, call(), "can be used in that capture only", name)
	}
	require.NoError(t, s.Record(newEvent(t, ctx)))
	require.NoError(t, c.Abort())
	require.Equal(t, []bool{false}, ends)
	require.NoError(t, d.Abort())
}

func TestCapturedMemoryOfNoGraph(t *testing.T) {
	ctx := open(t)
	s, fork := newStream(t, ctx), newStream(t, ctx)
	forked := newEvent(t, ctx)
	var ends []bool
	c := begin(t, s, Options{})
	m, released := allocIn(t, c, s, &ends), allocIn(t, c, s, &ends)
	released.Release()
	require.NoError(t, s.Record(forked))
	require.NoError(t, fork.Wait(forked))
	require.NoError(t, fillIn(c, fork, m, ""))
	_, err := c.End()
	require.ErrorIs(t, err, cuda.ErrorStreamCaptureUnjoined)
	require.Equal(t, []bool{false}, ends, "of the one that somebody has")
	g := newTestGraph(t, ctx, Options{})
	_, err = g.Memset(cuda.MemsetParams{Dst: m.Ptr(), ElementSize: 1, Count: 8}, NodeOptions{Operands: []Operand{{Memory: m}}})
	require.ErrorIs(t, err, cuda.ErrClosed)
	require.ErrorIs(t, c.Free(m, nil, nil, 0), cuda.ErrClosed)
	m.Release()
}

// A free comes after uses in streams that the capture has forked, joined or not.
func TestCapturedFreeComesAfterAllUses(t *testing.T) {
	ctx := open(t)
	s, fork := newStream(t, ctx), newStream(t, ctx)
	forked, joined := newEvent(t, ctx), newEvent(t, ctx)
	var ends []bool
	c := begin(t, s, Options{})
	m := allocIn(t, c, s, &ends)
	require.NoError(t, s.Record(forked))
	require.NoError(t, fork.Wait(forked))
	require.NoError(t, fillIn(c, fork, m, "there"))
	require.NoError(t, fillIn(c, s, m, "here"))
	require.NoError(t, c.Free(m, nil, nil, 0))
	require.NoError(t, fork.Record(joined))
	require.NoError(t, s.Wait(joined))
	g, err := c.End()
	require.NoError(t, err)
	require.ElementsMatch(t, []*Node{g.Node("here"), g.Node("there")}, g.Node("free_0").Dependencies())
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
	m.Release()
}

// The driver says that a stream was not joined, and not which one.
func TestStreamsThatWereNotJoinedAreNamed(t *testing.T) {
	ctx := open(t)
	s, joined, left := newStream(t, ctx), newStream(t, ctx), newStream(t, ctx)
	e := newEvent(t, ctx)
	c := begin(t, s, Options{})
	for _, fork := range []*cuda.Stream{joined, left} {
		require.NoError(t, s.Record(e))
		require.NoError(t, fork.Wait(e))
		for range 2 {
			require.NoError(t, recordHost(c, fork, "", hostFunc(func() {}), nil))
		}
	}
	require.NoError(t, joined.Record(e))
	require.NoError(t, s.Wait(e))
	require.NoError(t, recordHost(c, s, "", hostFunc(func() {}), nil))
	_, err := c.End()
	require.ErrorIs(t, err, cuda.ErrorStreamCaptureUnjoined)
	require.ErrorContains(t, err, left.String()+": join it")
	require.NotContains(t, err.Error(), joined.String())
}

// wait makes s wait for all that is in other.
func wait(t testing.TB, s, other *cuda.Stream) {
	t.Helper()
	e := newEvent(t, s.Context())
	require.NoError(t, other.Record(e))
	require.NoError(t, s.Wait(e))
}

// A free in a stream that has been joined would have to be joined again.
func TestCapturedMemoryOfAStreamThatWasJoined(t *testing.T) {
	ctx := open(t)
	s, other := newStream(t, ctx), newStream(t, ctx)
	c := begin(t, s, Options{})
	wait(t, other, s)
	var ends []bool
	m, early := allocIn(t, c, other, &ends), allocIn(t, c, other, &ends)
	require.NoError(t, fillIn(c, other, m, "fill"))
	require.NoError(t, c.Free(early, nil, nil, 0), "in the stream of its allocation")
	wait(t, s, other)
	require.NoError(t, fillIn(c, s, m, "again"))
	require.NoError(t, c.Free(m, nil, nil, 0), "in the stream of the capture")
	g, err := c.End()
	require.NoError(t, err)
	require.Contains(t, g.Node("free_0").Dependencies(), g.Node("fill"))
	require.Contains(t, g.Node("free_1").Dependencies(), g.Node("again"))
	x := instantiate(t, g, ExecOptions{})
	for range 2 {
		require.NoError(t, x.Launch(s))
	}
	require.NoError(t, s.Synchronize())
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
	m.Release()
	early.Release()
}

// What nobody knows the node of cannot be put before a free in another stream.
func TestCapturedMemoryOfAnUnknownUse(t *testing.T) {
	for _, where := range []string{"here", "elsewhere"} {
		ctx := open(t)
		s, other, third := newStream(t, ctx), newStream(t, ctx), newStream(t, ctx)
		c := begin(t, s, Options{})
		var ends []bool
		m := allocIn(t, c, s, &ends)
		wait(t, other, s)
		wait(t, third, s)
		in := map[string]*cuda.Stream{"here": s, "elsewhere": other}[where]
		// Two nodes for one operation: which of them uses the memory is not known.
		require.NoError(t, c.Record(in, Operation{Operands: []Operand{{Memory: m, Retainer: &token{}}}}, func() error {
			p := hostFunc(func() {})
			err := errors.Join(in.LaunchHostFunc(p.Fn, p.UserData), third.LaunchHostFunc(p.Fn, p.UserData))
			return errors.Join(err, in.Wait(recordIn(t, third)))
		}))
		require.NoError(t, c.Free(m, s, nil, 0))
		wait(t, s, other)
		wait(t, s, third)
		g, err := c.End()
		if where == "here" {
			require.NoError(t, err)
			require.NoError(t, g.Close())
		} else {
			require.ErrorContains(t, err, "must tell which node uses memory that another stream frees")
		}
		m.Release()
	}
}

func recordIn(t *testing.T, s *cuda.Stream) *cuda.Event {
	t.Helper()
	e := newEvent(t, s.Context())
	require.NoError(t, s.Record(e))
	return e
}
