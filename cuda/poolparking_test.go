// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/fault"
)

// nParked is how many pools are parked.
func (c *Context) nParked() (n int) {
	c.parkedPools.mu.Lock()
	defer c.parkedPools.mu.Unlock()
	for _, list := range c.parkedPools.pools {
		n += len(list)
	}
	return n
}

func TestPoolIsGivenOutAgainLikeNew(t *testing.T) {
	c := openSimulated(t, Options{Sim: "devices=2"})
	peer, err := c.drv.Device(1)
	require.NoError(t, err)
	_, err = peer.Context()
	require.NoError(t, err)
	s := newTestStream(t, c, StreamOptions{})
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{MaxSize: 1 << 20})
	require.NoError(t, err)
	handle := mr.PoolHandle()
	require.NoError(t, mr.SetPeerAccess(peer, true))
	require.NoError(t, mr.Set(AllowOpportunistic, false))
	b, err := mr.Allocate(4096, s)
	require.NoError(t, err)
	require.NoError(t, mr.Close())
	require.Zero(t, c.nParked(), "its memory is in use")
	require.NoError(t, b.Close())
	require.Equal(t, 1, c.nParked())

	other, err := NewDeviceMemoryResource(c.dev, PoolOptions{MaxSize: 1 << 21})
	require.NoError(t, err)
	require.NotEqual(t, handle, other.PoolHandle(), "it has another limit")
	threshold := uint64(77)
	again, err := NewDeviceMemoryResource(c.dev, PoolOptions{MaxSize: 1 << 20, ReleaseThreshold: &threshold})
	require.NoError(t, err)
	require.Equal(t, handle, again.PoolHandle())
	require.Zero(t, c.nParked())
	require.NoError(t, s.Synchronize())
	allowed, err := again.PeerAccess(peer)
	require.NoError(t, err)
	require.False(t, allowed)
	on, err := again.Setting(AllowOpportunistic)
	require.NoError(t, err)
	require.True(t, on)
	got, err := again.ReleaseThreshold()
	require.NoError(t, err)
	require.EqualValues(t, 77, got)
	st, err := again.Statistics()
	require.NoError(t, err)
	require.Zero(t, st.UsedHigh)
	require.NoError(t, again.Close())
	require.NoError(t, other.Close())
	require.Equal(t, 2, c.nParked())
	require.Zero(t, c.drv.Live()["MemoryPool"])
}

func TestMemoryOfAParkedPoolGoesBack(t *testing.T) {
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	free, _, err := c.dev.MemInfo()
	require.NoError(t, err)
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
	require.NoError(t, err)
	b, err := mr.Allocate(64<<20, s)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.NoError(t, mr.Close())
	require.NoError(t, s.Synchronize())
	now, _, err := c.dev.MemInfo()
	require.NoError(t, err)
	require.Equal(t, free, now)
}

func TestOnlySomePoolsAreParked(t *testing.T) {
	c := openSimulated(t, Options{})
	faults := fault.New(c.drv.api)
	c.drv.api = faults
	node := 0
	for place, open := range map[driver.CUmemLocationType]func() (*DeviceMemoryResource, error){
		driver.CU_MEM_LOCATION_TYPE_DEVICE:    func() (*DeviceMemoryResource, error) { return NewDeviceMemoryResource(c.dev, PoolOptions{}) },
		driver.CU_MEM_LOCATION_TYPE_HOST_NUMA: func() (*DeviceMemoryResource, error) { return NewPinnedPool(c.dev, PoolOptions{}, &node) },
	} {
		before, destroyed := c.nParked(), faults.Calls("CuMemPoolDestroy")
		var all []*DeviceMemoryResource
		for range spacesFor(place) + 3 {
			mr, err := open()
			require.NoError(t, err)
			all = append(all, mr)
		}
		for _, mr := range all[:len(all)-1] {
			require.NoError(t, mr.Close())
		}
		end := c.drv.waits.begin()
		require.NoError(t, all[len(all)-1].Close())
		require.Equal(t, spacesFor(place), c.nParked()-before)
		require.Equal(t, destroyed+2, faults.Calls("CuMemPoolDestroy"), "not beside a wait")
		end()
		require.Zero(t, c.Drain())
		require.Equal(t, destroyed+3, faults.Calls("CuMemPoolDestroy"))
	}
	c.drv.ReleaseUnused()
	require.Zero(t, c.nParked())
	for range 2 * spacesFor(driver.CU_MEM_LOCATION_TYPE_DEVICE) {
		mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
		require.NoError(t, err)
		require.NoError(t, mr.Close())
	}
	require.Equal(t, 1, c.nParked())
}

func TestParkedPoolsGoWhereThereIsNoRoomForAnother(t *testing.T) {
	c := openSimulated(t, Options{})
	faults := fault.New(c.drv.api)
	c.drv.api = faults
	for size := range uint64(3) {
		mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{MaxSize: (size + 1) << 20})
		require.NoError(t, err)
		defer mr.Close()
	}
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
	require.NoError(t, err)
	require.NoError(t, mr.Close())
	faults.Fail("CuMemPoolCreate", 1, driver.CUDA_ERROR_OUT_OF_MEMORY)
	mr, err = NewDeviceMemoryResource(c.dev, PoolOptions{MaxSize: 7 << 20})
	require.NoError(t, err)
	require.Zero(t, c.nParked())
	require.Equal(t, 1, faults.Calls("CuMemPoolDestroy"))
	faults.Fail("CuMemPoolCreate", 1, driver.CUDA_ERROR_OUT_OF_MEMORY)
	_, err = NewDeviceMemoryResource(c.dev, PoolOptions{MaxSize: 8 << 20})
	require.ErrorIs(t, err, ErrorOutOfMemory, "none is parked")
	require.NoError(t, mr.Close())
}

// A driver of NVIDIA's crashes where the two meet, and the simulated one ends the
// process.
func TestPoolsComeAndGoApartFromWaits(t *testing.T) {
	release := make(chan struct{})
	let := sync.OnceFunc(func() { close(release) })
	defer let()
	c := openSimulated(t, Options{CallHost: func(fn, userData uintptr) { <-release }})
	s, mr, b := sharedBuffer(t, c)
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	in := importOf(t, mr)
	known, err := in.Import(e, s)
	require.NoError(t, err)

	blocked := newTestStream(t, c, StreamOptions{})
	require.NoError(t, blocked.LaunchHostFunc(1, 2))
	waited := make(chan error)
	go func() { waited <- c.Synchronize() }()
	require.Eventually(t, func() bool {
		return c.drv.waits.young()
	}, 10*time.Second, time.Millisecond)

	again, err := in.Import(e, s)
	require.NoError(t, err, "it is known already")
	require.NoError(t, again.Close())
	require.NoError(t, known.Close())
	require.NoError(t, in.Close())
	live := c.drv.Live()
	require.Equal(t, 2, live["MemoryPool"], "the import goes after the wait")
	fd, leases, err := mr.Export()
	require.NoError(t, err)
	require.NoError(t, syscall.Close(leases))
	imported := make(chan error)
	var late *ImportedMemoryResource
	go func() {
		mr, err := ImportPool(c.dev, DeviceMemory, fd, -1)
		late = mr
		imported <- err
	}()
	select {
	case err := <-imported:
		t.Error("imported during a wait", err)
	case <-time.After(20 * time.Millisecond):
	}
	let()
	require.NoError(t, <-waited)
	require.NoError(t, <-imported)
	require.NoError(t, syscall.Close(fd))
	require.NoError(t, late.Close())
	require.Eventually(t, func() bool { return c.Drain() == 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, 1, c.drv.Live()["MemoryPool"])
	require.NoError(t, b.Close())
	require.NoError(t, mr.Close())
	require.NoError(t, s.Close())
}
