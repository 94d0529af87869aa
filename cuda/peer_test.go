// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// twoDevices returns two devices of a simulated driver, and a stream on the first.
func twoDevices(t *testing.T) (here, there *Device, s *Stream) {
	t.Helper()
	c := openSimulated(t, Options{Sim: "devices=2"})
	there, err := c.drv.Device(1)
	require.NoError(t, err)
	return c.dev, there, newTestStream(t, c, StreamOptions{})
}

func otherStream(t *testing.T, d *Device) *Stream {
	t.Helper()
	c, err := d.Context()
	require.NoError(t, err)
	return newTestStream(t, c, StreamOptions{})
}

func TestPeerAccess(t *testing.T) {
	here, there, _ := twoDevices(t)
	can, err := here.CanAccessPeer(there)
	require.NoError(t, err)
	require.True(t, can)
	for range 2 { // twice is fine: somebody else may have done it
		require.NoError(t, here.EnablePeerAccess(there))
	}
	for range 2 {
		require.NoError(t, here.DisablePeerAccess(there))
	}
	require.EqualError(t, here.EnablePeerAccess(here), "peer must be another device than device 0")
	require.EqualError(t, here.DisablePeerAccess(here), "peer must be another device than device 0")
}

func TestPeerAccessRefused(t *testing.T) {
	stub, c := openStub(t)
	other, err := c.drv.Device(1)
	require.NoError(t, err)
	stub.noPeers = true
	require.ErrorIs(t, c.dev.EnablePeerAccess(other), ErrorPeerAccessUnsupported)
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, mr.SetPeerAccess(other, true), ErrorPeerAccessUnsupported)
	require.Zero(t, stub.count("cuCtxEnablePeerAccess")+stub.count("cuMemPoolSetAccess"))
	require.NoError(t, mr.Close())
}

func TestPoolPeerAccess(t *testing.T) {
	here, there, s := twoDevices(t)
	mr, err := NewDeviceMemoryResource(there, PoolOptions{})
	require.NoError(t, err)
	b := allocate(t, mr, 64, otherStream(t, there))
	has := func() bool {
		has, err := mr.PeerAccess(here)
		require.NoError(t, err)
		return has
	}
	require.False(t, has())
	own, err := mr.PeerAccess(there)
	require.NoError(t, err)
	require.True(t, own)
	require.NoError(t, mr.SetPeerAccess(here, true))
	require.True(t, has())
	c, err := here.Context()
	require.NoError(t, err)
	require.NoError(t, Launch(s, one(), kernel(t, c, "poke"), b))
	require.NoError(t, s.Synchronize())
	require.NoError(t, mr.SetPeerAccess(here, false))
	require.False(t, has())
	require.EqualError(t, mr.SetPeerAccess(there, false), "peer must be another device than device 1")
	require.NoError(t, mr.Close())
	require.ErrorIs(t, mr.SetPeerAccess(here, true), ErrClosed)
	_, err = mr.PeerAccess(here)
	require.ErrorIs(t, err, ErrClosed)
}

func TestVirtualPeerAccess(t *testing.T) {
	here, there, s := twoDevices(t)
	_, err := NewVirtualMemoryResource(there, VirtualOptions{Peers: []*Device{there}})
	require.EqualError(t, err, "peer must be another device than device 1")
	mr, err := NewVirtualMemoryResource(there, VirtualOptions{Peers: []*Device{here}})
	require.NoError(t, err)
	require.True(t, mr.PeerAccess(here))
	b := allocate(t, mr, 4096, otherStream(t, there))
	require.NoError(t, b.Grow(8<<20))
	view, err := b.Slice(8<<20-4, 4)
	require.NoError(t, err)
	c, err := here.Context()
	require.NoError(t, err)
	require.NoError(t, Launch(s, one(), kernel(t, c, "poke"), b))
	require.NoError(t, Launch(s, one(), kernel(t, c, "poke"), view))
	require.NoError(t, s.Synchronize())
	got := make([]byte, 4)
	require.NoError(t, view.CopyToHost(got, s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, byte(7), got[0])
	require.NoError(t, view.Close())
}

func TestVirtualPeerAccessIsTold(t *testing.T) {
	stub, c := openStub(t)
	other, err := c.drv.Device(1)
	require.NoError(t, err)
	stub.attrs[driver.CUdevice_attribute(VirtualAddressManagementSupported)] = 1
	stub.noPeers = true
	_, err = NewVirtualMemoryResource(c.dev, VirtualOptions{Peers: []*Device{other}})
	require.ErrorIs(t, err, ErrorPeerAccessUnsupported)
}
