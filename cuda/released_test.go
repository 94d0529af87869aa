// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A meddler runs a function once, in another goroutine, after somebody has asked
// whether a stream is capturing, and gives it some time before the answer arrives.
type meddler struct {
	driver.API
	then func()
	over chan struct{}
}

func (m *meddler) CuStreamIsCapturing(s driver.CUstream) (driver.CUstreamCaptureStatus, driver.CUresult) {
	st, r := m.API.CuStreamIsCapturing(s)
	if then := m.then; then != nil {
		m.then = nil
		go func() {
			defer close(m.over)
			then()
		}()
		select {
		case <-m.over:
		case <-time.After(20 * time.Millisecond):
		}
	}
	return st, r
}

// A capture that begins between a release's look at the stream and what the release
// does there is neither invalidated nor given the release as a node.
func TestReleaseBesideABeginningCapture(t *testing.T) {
	m := &meddler{}
	wrap := wrapForTest
	wrapForTest = func(api driver.API) driver.API {
		m.API = api
		return m
	}
	c := openSimulated(t, Options{})
	wrapForTest = wrap
	s := newTestStream(t, c, StreamOptions{})
	pinned, err := NewPinnedMemoryResource(c.dev)
	require.NoError(t, err)
	managed, err := NewManagedMemoryResource(c.dev)
	require.NoError(t, err)
	for name, mr := range map[string]MemoryResource{
		"pool": device(t, c), "pinned": pinned, "managed": managed, "virtual": virtualResource(t, c, 0),
	} {
		t.Run(name, func(t *testing.T) {
			b := allocate(t, mr, 64, s)
			require.NoError(t, b.Fill(1, 1, s))
			m.over = make(chan struct{})
			m.then = func() { require.NoError(t, s.BeginCapture(CaptureRelaxed)) }
			require.NoError(t, b.Close())
			<-m.over
			g, err := s.EndCapture()
			require.NoError(t, err)
			nodes, err := c.GraphNodes(g)
			require.NoError(t, err)
			require.Empty(t, nodes)
			require.NoError(t, c.GraphDestroy(g))
			require.NoError(t, s.Synchronize())
			c.Drain()
			require.Zero(t, c.drv.Live()["Allocation"])
		})
	}
}
