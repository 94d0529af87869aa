// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func connected(t *testing.T) (a, b *Memory) {
	t.Helper()
	a, b = New(1<<30), New(1<<30)
	Connect(a, b)
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	return a, b
}

func TestReachOfPeers(t *testing.T) {
	a, b := connected(t)
	own := NewPermission("a call")
	p, err := b.Alloc(64, nil)
	require.NoError(t, err)
	q, err := b.AllocShared(64, nil, own)
	require.NoError(t, err)
	reaches := func(m *Memory, addr, size uint64) bool {
		s, ok := m.Reach(addr, size)
		require.Equal(t, ok, s.Host != nil)
		return ok
	}
	require.True(t, reaches(b, p, 64))
	require.False(t, reaches(a, p, 4))
	require.Equal(t, "memory of device 1, to which device 0 has no access: cuCtxEnablePeerAccess would give it", a.Denied(p))
	require.Equal(t, "memory of device 1, to which device 0 has no access: a call would give it", a.Denied(q))
	require.Empty(t, b.Denied(p))

	b.Peers().Allow(a, true)
	require.True(t, reaches(a, p, 64))
	require.False(t, reaches(a, p, 65))
	require.False(t, reaches(a, q, 4), "it has a permission of its own")
	own.Allow(a, true)
	require.True(t, reaches(a, q, 4))
	require.Empty(t, a.Denied(p))
	require.Empty(t, a.Denied(p+100), "no memory at all")
	require.NotNil(t, a.ShadowAt(p))
	require.Same(t, b.ShadowAt(p), a.ShadowAt(p), "there is one shadow")

	epoch := a.epoch.Load()
	b.Peers().Allow(a, false)
	require.Greater(t, a.epoch.Load(), epoch, "cached look-ups are invalid")
	require.False(t, reaches(a, p, 4))
	epoch = a.epoch.Load()
	require.NoError(t, b.Free(q, nil))
	require.Greater(t, a.epoch.Load(), epoch)
	require.False(t, reaches(a, q, 4))
	require.True(t, a.Near(q).Freed)
	require.Empty(t, a.Denied(q), "freed is what is wrong with it")
}

func TestHoldOfPeers(t *testing.T) {
	a, b := connected(t)
	p, err := b.Alloc(64, nil)
	require.NoError(t, err)
	held := a.HoldAll()
	require.NoError(t, b.Free(p, nil))
	require.Len(t, b.pending, 1, "a kernel on the other device may be using it")
	a.ReleaseAll(held)
	require.Empty(t, b.pending)
}

// Devices that look up each other's memory while it is allocated and freed do
// not deadlock.
func TestPeersTogether(t *testing.T) {
	a, b := connected(t)
	a.Peers().Allow(b, true)
	b.Peers().Allow(a, true)
	var group sync.WaitGroup
	for _, pair := range [][2]*Memory{{a, b}, {b, a}, {a, b}, {b, a}} {
		group.Go(func() {
			for range 300 {
				held := pair[0].HoldAll()
				p, err := pair[1].Alloc(64, nil)
				if err != nil {
					panic(err)
				}
				if _, ok := pair[0].Reach(p, 64); !ok {
					panic("out of reach")
				}
				pair[0].Near(p)
				pair[0].ShadowAt(p)
				if err := pair[1].Free(p, nil); err != nil {
					panic(err)
				}
				pair[0].ReleaseAll(held)
			}
		})
	}
	group.Wait()
}
