// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompanion(t *testing.T) {
	_, c := openStub(t)
	s := newTestStream(t, c, StreamOptions{})
	require.Nil(t, s.Companion())
	s.SetCompanion("a")
	require.Equal(t, "a", s.Companion())
	s.SetCompanion(nil)
	require.Nil(t, s.Companion())
}

// Close calls what OnClose registered, once, while the handle is still valid
// for its users.
func TestOnClose(t *testing.T) {
	stub, c := openStub(t)
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	told := 0
	var done func()
	require.True(t, s.OnClose(func() {
		told++
		require.True(t, s.IsClosed())
		require.Zero(t, stub.count("cuStreamDestroy"))
	}))
	_, done, err = s.Use()
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.Equal(t, 1, told)
	require.False(t, s.OnClose(func() { told++ }))
	require.Equal(t, 1, told)
	require.Zero(t, stub.count("cuStreamDestroy"))
	done()
	require.Equal(t, 1, stub.count("cuStreamDestroy"))
}

func TestEventPool(t *testing.T) {
	stub, c := openStub(t)
	e, err := c.TakeEvent(false)
	require.NoError(t, err)
	require.Nil(t, e, "none is created")
	a, err := c.TakeEvent(true)
	require.NoError(t, err)
	b, err := c.TakeEvent(true)
	require.NoError(t, err)
	require.NotSame(t, a, b)
	require.Equal(t, 2, c.drv.Live()["Event"])
	c.PutEvent(a)
	require.Equal(t, 1, c.drv.Live()["Event"])
	again, err := c.TakeEvent(false)
	require.NoError(t, err)
	require.Same(t, a, again)
	c.PutEvent(a)
	c.PutEvent(b)
	require.Zero(t, c.drv.Live()["Event"])
	require.Equal(t, 2, stub.count("cuEventCreate"))
	require.Zero(t, stub.count("cuEventDestroy"))
}
