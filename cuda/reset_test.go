// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/fault"
)

// openHostile opens a simulated driver on which a stale stream ends the process,
// and collects its warnings.
func openHostile(t *testing.T, devices string) (c *Context, warnings func() []error) {
	t.Helper()
	c = openSimulated(t, Options{Sim: "hostile=1,devices=" + devices, CallHost: func(fn, userData uintptr) {}})
	var mu sync.Mutex
	var list []error
	c.drv.OnWarning(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, err)
	})
	return c, func() []error {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

// requireWorks uses a device from its context on.
func requireWorks(t *testing.T, dev *Device) {
	t.Helper()
	c, err := dev.Context()
	require.NoError(t, err)
	require.False(t, c.IsLost())
	mr, err := dev.DefaultMemoryResource()
	require.NoError(t, err)
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	defer s.Close()
	b, err := mr.Allocate(4, s)
	require.NoError(t, err)
	defer b.Close()
	k := kernel(t, c, "poke")
	require.NoError(t, Launch(s, one(), k, b))
	got := make([]byte, 4)
	require.NoError(t, b.CopyToHost(got, s))
	require.Equal(t, byte(7), got[0])
	require.NoError(t, dev.Synchronize())
}

// poison makes a sticky error.
func poison(t *testing.T, c *Context) {
	t.Helper()
	s := newTestStream(t, c, StreamOptions{})
	require.NoError(t, Launch(s, one(), kernel(t, c, "poke"), nil))
	require.ErrorIs(t, s.Synchronize(), ErrorIllegalAddress)
	require.ErrorIs(t, c.dev.Synchronize(), ErrorIllegalAddress)
}

// lostObjects are one of each kind, and a use of each.
type lostObjects struct {
	close []io.Closer
	uses  map[string]func() error
}

func makeObjects(t *testing.T, c *Context) lostObjects {
	t.Helper()
	s, err := c.NewStream(StreamOptions{Name: "old"})
	require.NoError(t, err)
	e, err := c.NewEvent(EventOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Record(e))
	own, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
	require.NoError(t, err)
	pinned, err := NewPinnedMemoryResource(c.dev)
	require.NoError(t, err)
	virtual, err := NewVirtualMemoryResource(c.dev, VirtualOptions{})
	require.NoError(t, err)
	k := kernel(t, c, "poke")
	g, err := c.GraphCreate()
	require.NoError(t, err)
	x, err := c.Instantiate(g, 0)
	require.NoError(t, err)
	o := lostObjects{close: []io.Closer{s, e, own, pinned, virtual, k}, uses: map[string]func() error{
		"stream":  s.Synchronize,
		"default": c.DefaultStream(Legacy).Synchronize,
		"event":   func() error { _, err := e.Query(); return err },
		"context": c.Synchronize,
		"pool":    func() error { _, err := own.Statistics(); return err },
		"kernel":  func() error { _, err := k.MaxThreadsPerBlock(); return err },
		"graph":   func() error { _, err := c.GraphNodes(g); return err },
		"exec":    func() error { return c.ExecLaunch(x, s) },
		"nothing": func() error { return Memcpy(0, 0, 0, s) },
	}}
	for name, mr := range map[string]MemoryResource{"own": own, "pinned": pinned, "virtual": virtual, "default": device(t, c)} {
		b, err := mr.Allocate(64, s)
		require.NoError(t, err)
		part, err := b.Slice(8, 8)
		require.NoError(t, err)
		o.close = append(o.close, b, part)
		o.uses["buffer of "+name] = b.Retain
		o.uses["slice of "+name] = func() error { return part.Fill(0, 1, s) }
		o.uses["allocation from "+name] = func() error { _, err := mr.Allocate(64, s); return err }
	}
	require.NoError(t, c.Synchronize())
	t.Cleanup(func() {
		require.NoError(t, c.ExecDestroy(x))
		require.NoError(t, c.GraphDestroy(g))
	})
	return o
}

// requireLost requires that nothing can be used, and that all can be closed.
func (o lostObjects) requireLost(t *testing.T) {
	t.Helper()
	for name, use := range o.uses {
		err := use()
		require.ErrorIs(t, err, ErrLost, name)
		require.ErrorIs(t, err, ErrClosed, name)
		require.ErrorContains(t, err, "is closed: device 0 was reset", name)
	}
	for _, c := range o.close {
		require.NoError(t, c.Close())
		require.NoError(t, c.Close())
	}
}

func TestResetAfterFault(t *testing.T) {
	c, warnings := openHostile(t, "1")
	dev := c.dev
	mr := device(t, c)
	objects := makeObjects(t, c)
	poison(t, c)
	require.NoError(t, dev.Reset())
	require.True(t, c.IsLost())
	objects.requireLost(t)
	fresh, err := dev.Context()
	require.NoError(t, err)
	require.NotSame(t, c, fresh)
	require.NotSame(t, mr, device(t, fresh))
	requireWorks(t, dev)
	require.Empty(t, warnings())
}

func TestResetOfAHealthyDevice(t *testing.T) {
	c, warnings := openHostile(t, "2")
	dev := c.dev
	other, err := c.drv.Device(1)
	require.NoError(t, err)
	theirs, err := other.Context()
	require.NoError(t, err)
	s := newTestStream(t, theirs, StreamOptions{})
	e, err := c.NewEvent(EventOptions{})
	require.NoError(t, err)
	for range 3 {
		objects := makeObjects(t, c)
		require.NoError(t, dev.Reset())
		objects.requireLost(t)
		requireWorks(t, dev)
		requireWorks(t, other)
		c, err = dev.Context()
		require.NoError(t, err)
	}
	require.ErrorIs(t, s.Wait(e), ErrLost)
	require.NoError(t, s.Synchronize())
	require.NoError(t, e.Close())
	require.Empty(t, warnings())
}

func TestResetWithoutContext(t *testing.T) {
	c, _ := openHostile(t, "2")
	other, err := c.drv.Device(1)
	require.NoError(t, err)
	require.NoError(t, other.Reset())
	requireWorks(t, other)
	requireWorks(t, c.dev)
}

func TestResetCountsWhatAFaultKept(t *testing.T) {
	c, warnings := openHostile(t, "1")
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	poison(t, c)
	require.NoError(t, s.Close())
	require.NotEmpty(t, warnings())
	require.NotEmpty(t, c.drv.Live())
	require.NoError(t, c.dev.Reset())
}

func TestResetDuringACapture(t *testing.T) {
	c, warnings := openHostile(t, "1")
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	b, err := device(t, c).Allocate(64, s)
	require.NoError(t, err)
	require.NoError(t, s.BeginCapture(CaptureRelaxed))
	require.NoError(t, b.Close())
	require.Equal(t, 1, c.Drain(), "a free waits for the capture's end")
	require.NoError(t, c.dev.Reset())
	require.Zero(t, c.Drain())
	_, err = s.EndCapture()
	require.ErrorIs(t, err, ErrLost)
	require.False(t, c.drv.Capturing())
	require.NoError(t, s.Close())
	requireWorks(t, c.dev)
	require.Empty(t, warnings())
}

func TestResetReleasesRegisteredMemory(t *testing.T) {
	c, _ := openHostile(t, "1")
	released := 0
	b, err := c.RegisterHost(HostRegistration{Ptr: hostMemory(t, 64), Size: 64, Release: func() { released++ }})
	require.NoError(t, err)
	w := c.WrapBuffer(BufferInfo{Ptr: 64, Size: 8, Kind: HostMemory, Release: func() { released++ }})
	require.NoError(t, c.dev.Reset())
	require.Zero(t, released)
	require.True(t, b.IsLost())
	require.Nil(t, b.Bytes())
	require.False(t, w.IsLost(), "it was never the device's")
	require.NoError(t, b.Close())
	require.NoError(t, w.Close())
	require.Equal(t, 2, released)
}

func TestFailedResetChangesNothing(t *testing.T) {
	var faults *fault.Driver
	wrap := wrapForTest
	wrapForTest = func(api driver.API) driver.API {
		faults = fault.New(api)
		return faults
	}
	c, warnings := openHostile(t, "1")
	wrapForTest = wrap
	objects := makeObjects(t, c)
	for _, call := range []string{"CuCtxGetId", "CuDevicePrimaryCtxRelease"} {
		live := c.drv.Live()
		faults.Fail(call, 1, driver.CUDA_ERROR_NOT_SUPPORTED)
		require.ErrorIs(t, c.dev.Reset(), ErrorNotSupported)
		require.False(t, c.IsLost())
		require.Equal(t, live, c.drv.Live())
		requireWorks(t, c.dev)
		again, err := c.dev.Context()
		require.NoError(t, err)
		require.Same(t, c, again)
	}

	// What is closed while a reset is under way that fails is given back then.
	g, err := c.GraphCreate()
	require.NoError(t, err)
	destroyed := faults.Calls("CuGraphDestroy")
	require.True(t, c.refuse(nil))
	require.NoError(t, objects.close[0].Close())
	require.ErrorIs(t, c.Synchronize(), ErrLost)
	require.NoError(t, c.GraphDestroy(g))
	require.Equal(t, destroyed, faults.Calls("CuGraphDestroy"))
	c.reopen()
	require.Equal(t, destroyed+1, faults.Calls("CuGraphDestroy"))
	require.NoError(t, objects.close[1].Close())

	faults.Fail("CuDevicePrimaryCtxReset", 1, driver.CUDA_ERROR_UNKNOWN)
	require.ErrorIs(t, c.dev.Reset(), ErrorUnknown)
	require.True(t, c.IsLost(), "the context has gone before")
	for _, o := range objects.close {
		require.NoError(t, o.Close())
	}
	requireWorks(t, c.dev)
	require.Empty(t, warnings())
}

// What others have in the context would be taken away under them.
func TestResetOfASharedContext(t *testing.T) {
	var faults *fault.Driver
	wrap := wrapForTest
	wrapForTest = func(api driver.API) driver.API {
		faults = fault.New(api)
		return faults
	}
	c, warnings := openHostile(t, "1")
	wrapForTest = wrap
	_, r := faults.CuDevicePrimaryCtxRetain(c.dev.h)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	objects := makeObjects(t, c)
	live := c.drv.Live()

	var refused *ArgumentError
	require.ErrorAs(t, c.dev.Reset(), &refused)
	require.ErrorContains(t, refused, "device 0 cannot be reset: another library of this process")
	faults.Fail("CuDevicePrimaryCtxGetState", 1, driver.CUDA_ERROR_NOT_SUPPORTED)
	require.ErrorIs(t, c.dev.Reset(), ErrorNotSupported)
	require.False(t, c.IsLost())
	require.Equal(t, live, c.drv.Live())
	requireWorks(t, c.dev)
	require.Zero(t, faults.Calls("CuDevicePrimaryCtxReset"))

	// Not to be had again: lost to us, and left to the others.
	faults.Fail("CuDevicePrimaryCtxRetain", 1, driver.CUDA_ERROR_OUT_OF_MEMORY)
	require.ErrorIs(t, c.dev.Reset(), ErrorOutOfMemory)
	require.True(t, c.IsLost())
	require.Zero(t, faults.Calls("CuDevicePrimaryCtxReset"))
	for _, o := range objects.close {
		require.NoError(t, o.Close())
	}
	requireWorks(t, c.dev)

	require.Equal(t, driver.CUDA_SUCCESS, faults.CuDevicePrimaryCtxRelease(c.dev.h))
	require.NoError(t, c.dev.Reset())
	requireWorks(t, c.dev)
	require.Empty(t, warnings())
}

// On hardware some faults stay until the process ends.
func TestResetThatDoesNotHelp(t *testing.T) {
	stub, c := openStub(t)
	stub.on = func(call string) driver.CUresult {
		if call == "cuMemGetInfo" || call == "cuCtxSynchronize" {
			return driver.CUDA_ERROR_LAUNCH_FAILED
		}
		return driver.CUDA_SUCCESS
	}
	err := c.dev.Reset()
	require.ErrorIs(t, err, ErrorLaunchFailed)
	require.ErrorContains(t, err, "device 0 is still broken after its reset, only a new process can use it")
	require.True(t, c.IsLost())
	require.Equal(t, 1, stub.count("cuDevicePrimaryCtxReset"))
	require.Equal(t, 1, stub.count("cuDevicePrimaryCtxRelease"))
}

// Graphs that the driver copies meanwhile share state with it.
func TestGraphsAreNotDestroyedBesideCopies(t *testing.T) {
	drv, err := Open(Options{Driver: "sim"})
	require.NoError(t, err)
	dev, err := drv.Device(0)
	require.NoError(t, err)
	c, err := dev.Context()
	require.NoError(t, err)
	tried, destroyed := must(t, c.GraphCreate), must(t, c.GraphCreate)
	require.True(t, c.refuse(nil)) // a reset begins
	done, err := c.TryGraphDestroy(tried)
	require.NoError(t, err)
	require.False(t, done)
	require.NoError(t, c.GraphDestroy(destroyed)) // is postponed
	drv.related.RLock()                           // another thread copies a graph
	c.reopen()                                    // the reset is refused
	for _, g := range []GraphHandle{tried, destroyed} {
		_, err = c.GraphNodes(g)
		require.NoError(t, err)
	}
	drv.related.RUnlock()
	drv.Drain()
	_, err = c.GraphNodes(destroyed)
	require.ErrorIs(t, err, ErrorInvalidValue)
	done, err = c.TryGraphDestroy(tried)
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, drv.Close())
}

func must[T any](t *testing.T, make func() (T, error)) T {
	t.Helper()
	made, err := make()
	require.NoError(t, err)
	return made
}
