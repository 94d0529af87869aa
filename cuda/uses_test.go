// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUses(t *testing.T) {
	var u uses
	require.True(t, u.begin())
	require.True(t, u.begin())
	require.False(t, u.end(), "open: nothing to destroy")

	require.False(t, u.close(), "in use")
	require.False(t, u.begin(), "closed")
	require.True(t, u.end(), "the last user destroys")

	require.False(t, u.close(), "destroyed already")
	require.PanicsWithValue(t, "BUG: a use was ended twice", func() { u.end() })
}

func TestUsesUnusedCloserDestroys(t *testing.T) {
	var u uses
	require.True(t, u.close())
	require.True(t, u.closed())
}

// Whatever the interleaving, exactly one party destroys, and only after all
// have ended.
func TestUsesHammer(t *testing.T) {
	for range 200 {
		var (
			u         uses
			inUse     atomic.Int64
			destroyed atomic.Int64
			wg        sync.WaitGroup
		)
		destroy := func() {
			destroyed.Add(1)
			if inUse.Load() != 0 {
				t.Error("destroyed in use")
			}
		}
		for range 4 {
			wg.Go(func() {
				for range 10 {
					if !u.begin() {
						return
					}
					inUse.Add(1)
					inUse.Add(-1)
					if u.end() {
						destroy()
					}
				}
			})
			wg.Go(func() {
				if u.close() {
					destroy()
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, destroyed.Load())
	}
}

func TestRefs(t *testing.T) {
	var r refs
	require.False(t, r.retain(), "the zero value has no holder to join")
	r.init()
	require.True(t, r.retain())
	require.False(t, r.release())
	require.True(t, r.release(), "the last one")
	require.False(t, r.retain(), "gone")
	require.PanicsWithValue(t, "BUG: released more often than retained", func() { r.release() })
}

func TestRefsHammer(t *testing.T) {
	for range 200 {
		var (
			r    refs
			last atomic.Int64
			wg   sync.WaitGroup
		)
		r.init()
		for range 4 {
			wg.Go(func() {
				for range 10 {
					if !r.retain() {
						return
					}
					if r.release() {
						last.Add(1)
					}
				}
			})
		}
		wg.Go(func() {
			if r.release() {
				last.Add(1)
			}
		})
		wg.Wait()
		require.EqualValues(t, 1, last.Load())
	}
}
