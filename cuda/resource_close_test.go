// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A driver of NVIDIA's reads freed memory after a free into a pool that has been
// destroyed.
func TestPoolIsDestroyedAfterItsMemory(t *testing.T) {
	release := make(chan struct{})
	let := sync.OnceFunc(func() { close(release) })
	defer let()
	c := openSimulated(t, Options{CallHost: func(fn, userData uintptr) { <-release }})
	s := newTestStream(t, c, StreamOptions{})
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
	require.NoError(t, err)
	b, err := mr.Allocate(64, s)
	require.NoError(t, err)
	require.NoError(t, mr.Close())
	require.NoError(t, mr.Close())
	c.Drain()
	require.Equal(t, 1, c.drv.Live()["MemoryPool"])
	_, err = mr.Allocate(64, s)
	require.ErrorIs(t, err, ErrClosed)

	require.NoError(t, s.LaunchHostFunc(1, 2))
	closed := make(chan error)
	go func() { closed <- b.Close() }()
	require.Equal(t, 1, c.drv.Live()["MemoryPool"], "the stream has not come to the free")
	let()
	require.NoError(t, <-closed)
	require.Zero(t, c.drv.Live()["MemoryPool"])
}
