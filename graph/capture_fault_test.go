// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build cudagotest

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// A capture whose end has failed once can be ended again, and holds what it held.
func TestEndOfACaptureCanBeRepeated(t *testing.T) {
	for name, end := range map[string]func(*Capture) error{
		"End": func(c *Capture) error {
			g, err := c.End()
			if err != nil {
				return err
			}
			return g.Close()
		},
		"Abort": (*Capture).Abort,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := open(t)
			s := newStream(t, ctx)
			k := tokens(1)
			c := begin(t, s, Options{})
			require.NoError(t, recordHost(c, s, "a", hostFunc(func() {}), operands(k...)))
			drv := ctx.Driver()
			drv.FailCall("cuStreamEndCapture", 1, cuda.ErrorOutOfMemory)
			require.ErrorIs(t, end(c), cuda.ErrorOutOfMemory)
			require.False(t, c.IsEnded())
			drv.FailCall("cuStreamEndCapture", 1, cuda.ErrorOutOfMemory)
			drv.FailCall("cuStreamIsCapturing", 2, cuda.ErrorOutOfMemory) // the driver does not say
			require.ErrorIs(t, end(c), cuda.ErrorOutOfMemory)
			require.False(t, c.IsEnded())
			require.True(t, drv.Capturing())
			kept(t, k...)
			require.NoError(t, end(c))
			require.True(t, c.IsEnded())
			require.False(t, drv.Capturing())
			released(t, k...)
		})
	}
}

// A capture has begun although the driver says nothing of it then. In a stream
// that joined it nothing is recorded as long as the driver does not say where.
func TestCaptureOfWhichTheDriverDoesNotTell(t *testing.T) {
	ctx := open(t)
	s, fork := newStream(t, ctx), newStream(t, ctx)
	drv := ctx.Driver()
	drv.FailCall("cuStreamGetCaptureInfo", 1, cuda.ErrorOutOfMemory)
	c, err := Begin(s, cuda.CaptureRelaxed, Options{})
	require.NoError(t, err)
	drv.ClearFaults()
	forked, joined := newEvent(t, ctx), newEvent(t, ctx)
	require.NoError(t, s.Record(forked))
	require.NoError(t, fork.Wait(forked))
	for n := 1; n <= 2; n++ { // of the fork, of the origin
		drv.FailCall("cuStreamGetCaptureInfo", n, cuda.ErrorOutOfMemory)
		_, err = CaptureOf(fork)
		require.ErrorIs(t, err, cuda.ErrorOutOfMemory)
		require.False(t, drv.ClearFaults())
	}
	require.Same(t, c, captureOf(t, fork))
	require.NoError(t, fork.Record(joined))
	require.NoError(t, s.Wait(joined))
	g, err := c.End()
	require.NoError(t, err)
	require.False(t, drv.Capturing())
	require.NoError(t, g.Close())
}

// The end of a capture of which the driver does not say whether it is over is
// known at the latest when the stream begins another one, which it is not mixed
// up with.
func TestCaptureThatIsOverUnknown(t *testing.T) {
	ctx := open(t)
	s, fork := newStream(t, ctx), newStream(t, ctx)
	forked := newEvent(t, ctx)
	k := tokens(2)
	first := begin(t, s, Options{})
	require.NoError(t, recordHost(first, s, "", hostFunc(func() {}), operands(k[0])))
	require.NoError(t, s.Record(forked))
	require.NoError(t, fork.Wait(forked))
	require.NoError(t, recordHost(first, fork, "", hostFunc(func() {}), nil)) // and is not joined back: so the end is an error, and an end
	drv := ctx.Driver()
	drv.FailCall("cuStreamIsCapturing", 2, cuda.ErrorOutOfMemory)
	_, err := first.End()
	require.ErrorIs(t, err, cuda.ErrorStreamCaptureUnjoined)
	require.False(t, drv.ClearFaults())
	require.False(t, first.IsEnded(), "nobody has said so")
	kept(t, k[0])

	second := begin(t, s, Options{})
	require.True(t, first.IsEnded())
	released(t, k[0])
	require.NoError(t, recordHost(second, s, "", hostFunc(func() {}), operands(k[1])))
	_, err = first.End()
	require.ErrorIs(t, err, cuda.ErrClosed)
	require.NoError(t, first.Abort())
	g, err := second.End()
	require.NoError(t, err)
	require.Len(t, g.Nodes(), 1)
	require.False(t, drv.Capturing())
	require.NoError(t, g.Close())
	released(t, k[1])
}

// A free that cannot be ordered after a use in another stream becomes no graph.
func TestCapturedFreeThatComesTooEarly(t *testing.T) {
	ctx := open(t)
	s, fork := newStream(t, ctx), newStream(t, ctx)
	forked, joined := newEvent(t, ctx), newEvent(t, ctx)
	var ends []bool
	c := begin(t, s, Options{})
	m := allocIn(t, c, s, &ends)
	require.NoError(t, s.Record(forked))
	require.NoError(t, fork.Wait(forked))
	require.NoError(t, fillIn(c, fork, m, ""))
	drv := ctx.Driver()
	drv.FailCall("cuMemFreeAsync", 1, cuda.ErrorOutOfMemory)
	require.ErrorIs(t, c.Free(m, nil, nil, 0), cuda.ErrorOutOfMemory)
	drv.FailCall("cuGraphAddDependencies", 1, cuda.ErrorOutOfMemory)
	require.NoError(t, c.Free(m, nil, nil, 0))
	require.NoError(t, fork.Record(joined))
	require.NoError(t, s.Wait(joined))
	_, err := c.End()
	require.ErrorIs(t, err, cuda.ErrorOutOfMemory)
	require.ErrorContains(t, err, "cuGraphAddDependencies")
	require.Equal(t, []bool{false}, ends)
	m.Release()
}

// An allocation that failed has captured nothing.
func TestCapturedAllocationThatFails(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	mr, err := ctx.Device().DefaultMemoryResource()
	require.NoError(t, err)
	c := begin(t, s, Options{})
	for _, call := range []string{"cuStreamGetCaptureInfo", "cuMemAllocFromPoolAsync"} {
		ctx.Driver().FailCall(call, 1, cuda.ErrorOutOfMemory)
		_, err = c.Alloc(s, 8, 7, nil, func() (uint64, error) { return mr.AllocateNode(8, s) })
		require.ErrorIs(t, err, cuda.ErrorOutOfMemory)
	}
	g, err := c.End()
	require.NoError(t, err)
	require.Empty(t, g.Nodes())
	require.NoError(t, g.Close())
}
