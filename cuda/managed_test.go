// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func managedBuffer(t *testing.T, c *Context, size uint64) *Buffer {
	t.Helper()
	mr, err := NewManagedMemoryResource(c.dev)
	require.NoError(t, err)
	return allocate(t, mr, size, nil)
}

func TestAdvice(t *testing.T) {
	c := openSimulated(t, Options{Sim: "devices=2"})
	s := newTestStream(t, c, StreamOptions{})
	other, err := c.drv.Device(1)
	require.NoError(t, err)
	here, there, host := Location{c.dev}, Location{other}, Location{}
	require.Equal(t, "the host", host.String())
	require.Equal(t, "device 1", there.String())
	b := managedBuffer(t, c, 16384)
	got, err := b.RangeAttributes()
	require.NoError(t, err)
	require.Equal(t, RangeAttributes{}, got)

	require.NoError(t, b.Advise(SetReadMostly, host))
	require.NoError(t, b.Advise(SetPreferredLocation, there))
	require.NoError(t, b.Advise(SetAccessedBy, host))
	require.NoError(t, b.Advise(SetAccessedBy, there))
	require.NoError(t, b.Advise(SetAccessedBy, here))
	require.NoError(t, b.Prefetch(there, s))
	got, err = b.RangeAttributes()
	require.NoError(t, err)
	require.Equal(t, RangeAttributes{ReadMostly: true, Preferred: &there, LastPrefetch: &there, AccessedBy: []Location{here, there, host}}, got)

	view, err := b.Slice(4096, 8192)
	require.NoError(t, err)
	require.NoError(t, view.Advise(UnsetReadMostly, host))
	require.NoError(t, view.Advise(SetPreferredLocation, host))
	require.NoError(t, view.Advise(UnsetAccessedBy, there))
	require.NoError(t, view.Prefetch(host, s))
	got, err = view.RangeAttributes()
	require.NoError(t, err)
	require.Equal(t, RangeAttributes{Preferred: &host, LastPrefetch: &host, AccessedBy: []Location{here, host}}, got)
	got, err = b.RangeAttributes()
	require.NoError(t, err)
	require.Equal(t, RangeAttributes{AccessedBy: []Location{here, host}}, got)
	require.NoError(t, view.Close())
	require.ErrorIs(t, view.Advise(SetReadMostly, host), ErrClosed)
	require.ErrorIs(t, view.Prefetch(host, s), ErrClosed)
	_, err = view.RangeAttributes()
	require.ErrorIs(t, err, ErrClosed)
}

func TestAdviceRefuses(t *testing.T) {
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	b := allocate(t, device(t, c), 64, s)
	const text = "buffer must be managed memory to be advised about or prefetched, got device memory"
	require.EqualError(t, b.Advise(SetReadMostly, Location{}), text)
	require.EqualError(t, b.Prefetch(Location{}, s), text)
	_, err := b.RangeAttributes()
	require.EqualError(t, err, text)
	require.ErrorIs(t, c.Advise(b.Ptr(), 64, SetReadMostly, Location{}), ErrorInvalidValue)
	require.ErrorIs(t, Prefetch(b.Ptr(), 64, Location{}, s), ErrorInvalidValue)
	_, err = c.RangeAttributes(b.Ptr(), 64)
	require.ErrorIs(t, err, ErrorInvalidValue)

	stub, c := openStub(t)
	stub.attrs[driver.CUdevice_attribute(ConcurrentManagedAccess)] = 0
	require.ErrorIs(t, c.Advise(4096, 64, SetPreferredLocation, Location{c.dev}), ErrorNotSupported)
	require.ErrorIs(t, Prefetch(4096, 64, Location{}, c.legacy), ErrorNotSupported)
}

// No bytes are nobody's page.
func TestAdviceAboutNothing(t *testing.T) {
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	b := managedBuffer(t, c, 0)
	require.NoError(t, b.Advise(SetReadMostly, Location{}))
	require.NoError(t, b.Prefetch(Location{}, s))
	got, err := b.RangeAttributes()
	require.NoError(t, err)
	require.Equal(t, RangeAttributes{}, got)
}

func TestAdviceDuringCapture(t *testing.T) {
	c := openSimulated(t, Options{})
	s, other := newTestStream(t, c, StreamOptions{}), newTestStream(t, c, StreamOptions{})
	b := managedBuffer(t, c, 64)
	leave, err := c.Enter()
	require.NoError(t, err)
	defer leave()
	require.NoError(t, s.BeginCapture(CaptureGlobal))
	require.NoError(t, b.Advise(SetReadMostly, Location{}))
	require.NoError(t, b.Prefetch(Location{}, other))
	require.EqualError(t, b.Prefetch(Location{}, s), "stream must not be capturing: a prefetch cannot be part of a graph")
	g, err := s.EndCapture()
	require.NoError(t, err, "the capture goes on")
	require.NoError(t, c.GraphDestroy(g))
}
