// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

func begin(t testing.TB, s *cuda.Stream, o Options) *Capture {
	t.Helper()
	// Relaxed, since a test's goroutine moves between threads.
	c, err := Begin(s, cuda.CaptureRelaxed, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Abort() })
	return c
}

// captureOf is CaptureOf where the driver answers.
func captureOf(t *testing.T, s *cuda.Stream) *Capture {
	t.Helper()
	c, err := CaptureOf(s)
	require.NoError(t, err)
	return c
}

// recordHost records a call of p in s, as the border does for one of Python.
func recordHost(c *Capture, s *cuda.Stream, name string, p cuda.HostParams, ops []Operand) error {
	return c.Record(s, Operation{Name: name, Params: p, Operands: ops}, func() error {
		return s.LaunchHostFunc(p.Fn, p.UserData)
	})
}

func TestCapturedOperationsBecomeNodes(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	b := buffers(t, ctx, 2, 8)
	var m mirror
	k := tokens(4)
	require.Nil(t, captureOf(t, s))
	c := begin(t, s, Options{OnBundle: m.apply})
	require.Same(t, c, captureOf(t, s))
	require.Same(t, s, c.Stream())

	fill := cuda.MemsetParams{Dst: b[1].Ptr(), ElementSize: 1, Count: 8, Value: 5}
	require.NoError(t, c.Record(s, Operation{Params: fill, Operands: operands(k[0])}, func() error {
		return cuda.Memset(fill.Dst, fill.Value, 1, 8, s)
	}))
	cp := cuda.MemcpyParams{Dst: b[0].Ptr(), Src: b[1].Ptr(), Size: 8}
	require.NoError(t, c.Record(s, Operation{Name: "copy", Params: cp, Operands: operands(k[1])}, func() error {
		return cuda.Memcpy(cp.Dst, cp.Src, cp.Size, s)
	}))
	other := hostFunc(func() {})
	require.NoError(t, s.LaunchHostFunc(other.Fn, other.UserData)) // by another library
	require.NoError(t, c.Keep(operands(k[2])))
	require.ErrorContains(t, recordHost(c, s, "copy", other, operands(k[3])), "must be unique in the capture")
	released(t, k[3])
	m.holds(t)

	g, err := c.End()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	require.Nil(t, captureOf(t, s))
	m.holds(t, k[0], k[1], k[2])
	require.Len(t, g.Nodes(), 3)
	require.Equal(t, fill, g.Node("memset_0").Params())
	require.Equal(t, []*Node{g.Node("memset_0")}, g.Node("copy").Dependencies())
	require.Equal(t, cuda.HostNode, g.Node("host_0").Kind())
	require.Nil(t, g.Node("host_0").Params())
	require.ElementsMatch(t, []string{"memset_0:op0", "copy:op1", ":op2"}, names(g.Retained()))

	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	kept(t, k[:3]...)
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, []byte{5, 5, 5, 5, 5, 5, 5, 5}, b[0].Bytes())

	// A captured node is updated like any other.
	fill.Value = 9
	k = append(k, &token{name: "new"})
	require.NoError(t, x.Node("memset_0").UpdateMemset(fill, operands(k[4])))
	eventuallyReleased(t, k[0])
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, byte(9), b[0].Bytes()[0])
	require.NoError(t, x.Close())
	eventuallyReleased(t, k...)
}

func TestForkedStreamsTakePart(t *testing.T) {
	ctx := open(t)
	s, fork := newStream(t, ctx), newStream(t, ctx)
	forked, joined := newEvent(t, ctx), newEvent(t, ctx)
	k := tokens(2)
	c := begin(t, s, Options{})
	require.NoError(t, s.Record(forked))
	require.Nil(t, captureOf(t, fork))
	require.NoError(t, fork.Wait(forked))
	require.Same(t, c, captureOf(t, fork))

	p := hostFunc(func() {})
	require.NoError(t, recordHost(c, s, "here", p, operands(k[0])))
	require.NoError(t, recordHost(captureOf(t, fork), fork, "there", p, operands(k[1])))
	require.NoError(t, fork.Record(joined))
	require.NoError(t, s.Wait(joined))
	require.NoError(t, recordHost(c, s, "after", p, nil))
	g, err := c.End()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"here:op0", "there:op1"}, names(g.Retained()))
	require.Empty(t, g.Node("there").Dependencies())
	require.ElementsMatch(t, []*Node{g.Node("here"), g.Node("there")}, g.Node("after").Dependencies())
	require.NoError(t, g.Close())
	released(t, k...)
}

func newEvent(t testing.TB, ctx *cuda.Context) *cuda.Event {
	t.Helper()
	e, err := ctx.NewEvent(cuda.EventOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func TestInvalidatedCaptureReleasesEverything(t *testing.T) {
	ctx := open(t)
	s, fork := newStream(t, ctx), newStream(t, ctx)
	var m mirror
	k := tokens(4)
	c := begin(t, s, Options{OnBundle: m.apply})
	p := hostFunc(func() {})
	require.NoError(t, recordHost(c, s, "a", p, operands(k[0])))
	require.NoError(t, c.Keep(operands(k[1])))
	require.Error(t, s.Synchronize()) // invalidates it
	require.ErrorIs(t, recordHost(c, s, "b", p, operands(k[2])), cuda.ErrorStreamCaptureInvalidated)
	released(t, k[2])
	kept(t, k[0], k[1])

	_, err := c.End()
	require.ErrorIs(t, err, cuda.ErrorStreamCaptureInvalidated)
	require.ErrorContains(t, err, "(by none of cudago's calls: by another library, or in a callback)")
	require.ErrorContains(t, err, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED")
	released(t, k[0], k[1])
	m.holds(t)
	require.Nil(t, captureOf(t, s))
	_, err = c.End()
	require.ErrorIs(t, err, cuda.ErrClosed)
	require.ErrorIs(t, recordHost(c, s, "c", p, operands(k[3])), cuda.ErrClosed)
	released(t, k[3])
	k = tokens(1)
	require.ErrorIs(t, c.Keep(operands(k...)), cuda.ErrClosed)
	released(t, k...)
	require.NoError(t, c.Abort())

	// A fork that was not joined back.
	k = tokens(1)
	e := newEvent(t, ctx)
	c = begin(t, s, Options{})
	require.NoError(t, s.Record(e))
	require.NoError(t, fork.Wait(e))
	require.NoError(t, recordHost(c, fork, "lost", p, operands(k...)))
	_, err = c.End()
	require.ErrorIs(t, err, cuda.ErrorStreamCaptureUnjoined)
	released(t, k...)
	require.NoError(t, s.Synchronize())
	require.NoError(t, fork.Synchronize())
}

func TestFailedOperationReleasesItsOperands(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	k := tokens(1)
	c := begin(t, s, Options{})
	cause := errors.New("cause")
	err := c.Record(s, Operation{Name: "a", Operands: operands(k...)}, func() error { return cause })
	require.Same(t, cause, err)
	released(t, k...)
	// The name is free again, and the capture is as it was.
	require.NoError(t, recordHost(c, s, "a", hostFunc(func() {}), nil))
	g, err := c.End()
	require.NoError(t, err)
	require.Len(t, g.Nodes(), 1)
	require.NoError(t, g.Close())
}

func TestOperationWithoutANodeIsKeptByTheGraph(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	k := tokens(2)
	c := begin(t, s, Options{})
	require.NoError(t, c.Record(s, Operation{Name: "nothing", Operands: operands(k[0])}, func() error { return nil }))
	p := hostFunc(func() {})
	require.NoError(t, c.Record(s, Operation{Operands: operands(k[1])}, func() error {
		return errors.Join(s.LaunchHostFunc(p.Fn, 1), s.LaunchHostFunc(p.Fn, 2))
	}))
	g, err := c.End()
	require.NoError(t, err)
	require.Equal(t, ":op0", names(g.Retained())[1])
	require.Len(t, g.Retained(), 2)
	clone, err := g.Clone(Options{})
	require.NoError(t, err)
	require.NoError(t, g.Close())
	kept(t, k...)
	require.NoError(t, clone.Close())
	released(t, k...)
}

func TestAbort(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	k := tokens(1)
	c := begin(t, s, Options{OnBundle: func(_ []Operand, held bool) { require.True(t, held, "nobody has the graph") }})
	require.NoError(t, recordHost(c, s, "a", hostFunc(func() { t.Error("ran") }), operands(k...)))
	require.False(t, c.IsEnded())
	require.NoError(t, c.Abort())
	require.True(t, c.IsEnded())
	released(t, k...)
	require.NoError(t, s.Synchronize())
}

// The driver refuses to end it, and ends it all the same.
func TestCaptureEndedByAnotherThread(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	k := tokens(1)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := Begin(s, cuda.CaptureThreadLocal, Options{})
	require.NoError(t, err)
	require.NoError(t, recordHost(c, s, "a", hostFunc(func() {}), operands(k...)))
	wrong := make(chan error)
	go func() {
		runtime.LockOSThread()
		_, err := c.End()
		wrong <- err
		wrong <- c.Abort()
	}()
	require.ErrorIs(t, <-wrong, cuda.ErrorStreamCaptureWrongThread)
	require.NoError(t, <-wrong)
	require.True(t, c.IsEnded())
	require.Nil(t, captureOf(t, s))
	released(t, k...)
	require.NoError(t, s.Synchronize())
}

// A call into it fails until it is ended, which another thread may do at any moment:
// then the call would be made after all, outside of the capture.
func TestNothingIsCalledInAnInvalidatedCapture(t *testing.T) {
	ctx := open(t)
	s, other := newStream(t, ctx), newStream(t, ctx)
	c := begin(t, s, Options{})
	wait(t, other, s)
	require.Error(t, other.Synchronize()) // invalidates it
	require.Nil(t, captureOf(t, other))
	require.ErrorIs(t, StillCapturing(other), cuda.ErrorStreamCaptureInvalidated)
	require.NoError(t, c.Abort())
	require.ErrorIs(t, StillCapturing(other), ErrNotCapturing)
}

func TestCaptureThatCannotBegin(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	begin(t, s, Options{})
	_, err := Begin(s, cuda.CaptureRelaxed, Options{})
	require.ErrorIs(t, err, cuda.ErrorIllegalState)
	require.Equal(t, 1, Live()["Capture"])
}

func TestCapturedKernelIsRetained(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	b := buffers(t, ctx, 1, 8)
	k := newKernel(t, ctx)
	params := cuda.KernelNodeParams{Kernel: k, Config: cuda.LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1}}}
	c := begin(t, s, Options{})
	require.NoError(t, c.Record(s, Operation{Name: "k", Params: params}, func() error {
		return cuda.Launch(s, params.Config, k, b[0], uint32(7))
	}))
	g, err := c.End()
	require.NoError(t, err)
	require.Equal(t, []string{"k:kernel"}, names(g.Retained()))
	require.Equal(t, params, g.Node("k").Params())
	require.Contains(t, g.DOT(nowhere), `put [1 1 1] × [1 1 1]`)
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, g.Close())
	require.NoError(t, k.Close()) // the graph keeps the module
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, []byte{7, 0, 0, 0}, b[0].Bytes()[:4])
}

// A wait for the context invalidates the captures that are open when it is
// called.
func TestCapturesDuringWaitsForTheContext(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	var stop atomic.Bool
	var waits, refused int
	ended := make(chan error, 1)
	go func() {
		var err error
		for !stop.Load() {
			switch e := ctx.Synchronize(); {
			case e == nil:
				waits++
			case errors.Is(e, cuda.ErrorStreamCaptureUnsupported):
				refused++
			default:
				err = errors.Join(err, e)
			}
			time.Sleep(time.Microsecond) // a wait right after a wait would keep every capture from beginning
		}
		ended <- err
	}()
	for range 2000 {
		c, err := Begin(s, cuda.CaptureRelaxed, Options{})
		require.NoError(t, err)
		require.NoError(t, recordHost(c, s, "", hostFunc(func() {}), nil))
		g, err := c.End()
		require.NoError(t, err)
		require.NoError(t, g.Close())
	}
	stop.Store(true)
	require.NoError(t, <-ended)
	require.Positive(t, waits)
	t.Logf("%d waits, %d refused", waits, refused)
}

func TestACaptureThatKeepsNothingMore(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	c := begin(t, s, Options{})
	require.NoError(t, c.Keep(nil))
	require.NoError(t, c.Record(s, Operation{}, func() error { return nil })) // no node, no operands
	g, err := c.End()
	require.NoError(t, err)
	x := instantiate(t, g, ExecOptions{})
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
}

// The driver has a stream of each thread for that handle.
func TestTwoThreadsCaptureTheirDefaultStreams(t *testing.T) {
	ctx := open(t)
	s := ctx.DefaultStream(cuda.PerThread)
	kept := tokens(2)
	p := hostFunc(func() {})
	began, ended := make(chan *Capture), make(chan error)
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		c, err := Begin(s, cuda.CaptureRelaxed, Options{})
		if err == nil {
			err = recordHost(c, s, "first", p, operands(kept[0]))
		}
		began <- c
		<-done
		of, errOf := CaptureOf(s)
		if of != c {
			errOf = errors.New("it is another capture's stream")
		}
		g, errEnd := c.End()
		if g != nil {
			errEnd = errors.Join(errEnd, g.Close())
		}
		ended <- errors.Join(err, errOf, errEnd)
	}()
	first := <-began
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.Nil(t, captureOf(t, s), "this thread captures nothing")
	_, err := first.End()
	require.ErrorIs(t, err, cuda.ErrorStreamCaptureWrongThread)
	c := begin(t, s, Options{})
	require.NoError(t, recordHost(c, s, "second", p, operands(kept[1])))
	require.False(t, kept[0].isReleased())
	close(done)
	require.NoError(t, <-ended)
	require.True(t, kept[0].isReleased())
	require.True(t, ctx.Driver().Capturing(), "this thread's")
	require.False(t, kept[1].isReleased())
	g, err := c.End()
	require.NoError(t, err)
	require.False(t, ctx.Driver().Capturing())
	require.NoError(t, g.Close())
}

// Another library has ended the first, and the second is of another object for the
// same stream.
func TestACaptureOfTheSameHandle(t *testing.T) {
	ctx := open(t)
	own := newStream(t, ctx)
	a, b := ctx.WrapStream(own.Handle()), ctx.WrapStream(own.Handle())
	_, err := Begin(a, cuda.CaptureRelaxed, Options{})
	require.NoError(t, err)
	h, err := b.EndCapture()
	require.NoError(t, err)
	require.NoError(t, ctx.GraphDestroy(h))
	c := begin(t, b, Options{})
	g, err := c.End()
	require.NoError(t, err)
	require.False(t, ctx.Driver().Capturing())
	require.NoError(t, g.Close())
}
