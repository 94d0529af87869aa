// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// greenOperations are for [operations], on drivers that have green contexts.
func greenOperations(t *testing.T, c *Context) map[string]func() (io.Closer, error) {
	t.Helper()
	parts := split(t, c, SplitOptions{Count: 2})
	g, err := c.NewGreenContext(parts[0])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return map[string]func() (io.Closer, error){
		"all SMs":           func() (io.Closer, error) { _, err := c.dev.SMs(); return nil, err },
		"new green context": func() (io.Closer, error) { return c.NewGreenContext(parts[1]) },
		"new green stream":  func() (io.Closer, error) { return g.NewStream(StreamOptions{}) },
		"split SMs": func() (io.Closer, error) {
			all, err := c.dev.SMs()
			if err == nil {
				_, _, err = all.Split(SplitOptions{Count: 2})
			}
			return nil, err
		},
	}
}

func split(t *testing.T, c *Context, o SplitOptions) []Partition {
	t.Helper()
	all, err := c.dev.SMs()
	require.NoError(t, err)
	parts, _, err := all.Split(o)
	require.NoError(t, err)
	return parts
}

func TestSplit(t *testing.T) {
	c := openSimulated(t, Options{})
	all, err := c.dev.SMs()
	require.NoError(t, err)
	require.Equal(t, 8, all.SMCount())
	parts, rest, err := all.Split(SplitOptions{Count: 3})
	require.NoError(t, err)
	require.Len(t, parts, 2)
	require.Equal(t, []int{4, 4, 0}, []int{parts[0].SMCount(), parts[1].SMCount(), rest.SMCount()})
	parts, rest, err = all.Split(SplitOptions{Count: 2, Groups: 1})
	require.NoError(t, err)
	require.Len(t, parts, 1)
	require.Equal(t, 6, rest.SMCount())

	for _, o := range []SplitOptions{{Count: 0}, {Count: 9}, {Count: 2, Groups: -1}} {
		_, _, err := all.Split(o)
		require.ErrorAs(t, err, new(*ArgumentError))
	}
	_, _, err = parts[0].Split(SplitOptions{Count: 2})
	require.ErrorIs(t, err, Result(915)) // CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
	require.ErrorContains(t, err, "no part of 2 SMs can be made of the 2 of device 0")
}

func TestGreenContextIsOfPartsThatDiffer(t *testing.T) {
	c := openSimulated(t, Options{Sim: "devices=2"})
	other, err := c.drv.Device(1)
	require.NoError(t, err)
	theirs, err := other.SMs()
	require.NoError(t, err)
	parts := split(t, c, SplitOptions{Count: 2})
	for _, wrong := range [][]Partition{nil, {theirs}, {parts[0], parts[0]}, {{dev: c.dev}}} {
		_, err := c.NewGreenContext(wrong...)
		require.ErrorAs(t, err, new(*ArgumentError))
	}
	g, err := c.NewGreenContext(parts[0], parts[2])
	require.NoError(t, err)
	require.Equal(t, 4, g.SMCount())
	require.NoError(t, g.Close())
}

func TestGreenContextLivesAsLongAsItsStreams(t *testing.T) {
	c := openSimulated(t, Options{})
	g, err := c.NewGreenContext(split(t, c, SplitOptions{Count: 2})[0])
	require.NoError(t, err)
	_, err = g.NewStream(StreamOptions{Blocking: true})
	require.ErrorAs(t, err, new(*ArgumentError))
	s, err := g.NewStream(StreamOptions{Priority: -1})
	require.NoError(t, err)
	require.NoError(t, g.Close())
	require.NoError(t, g.Close())
	require.True(t, g.IsClosed())
	_, err = g.NewStream(StreamOptions{})
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, s.Synchronize())
	release := s.HoldGreenContext()
	require.NoError(t, s.Close())
	require.Equal(t, map[string]int{"GreenContext": 1}, c.drv.Live())
	require.ErrorContains(t, c.dev.Reset(), "green contexts (1)")
	release()
	require.Empty(t, c.drv.Live())
	require.NoError(t, c.dev.Reset())
}

// A stream that others know is given out again, and keeps its green context.
func TestExposedStreamOfAGreenContext(t *testing.T) {
	c := openSimulated(t, Options{})
	g, err := c.NewGreenContext(split(t, c, SplitOptions{Count: 2})[0])
	require.NoError(t, err)
	s, err := g.NewStream(StreamOptions{})
	require.NoError(t, err)
	s.Expose()
	h := s.Handle()
	require.NoError(t, s.Close())
	plain, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	require.NotEqual(t, h, plain.Handle())
	require.NoError(t, plain.Close())
	again, err := g.NewStream(StreamOptions{})
	require.NoError(t, err)
	require.Equal(t, h, again.Handle())
	require.NoError(t, again.Close())
	require.NoError(t, g.Close())
	require.Equal(t, map[string]int{"GreenContext": 1}, c.drv.Live())
	require.True(t, c.parked.remove(again.h))
	g.end()
}
