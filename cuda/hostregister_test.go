// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// hostBytes maps memory that no driver knows.
func hostBytes(t *testing.T, size int) []byte {
	t.Helper()
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(mem)) })
	return mem
}

func hostMemory(t *testing.T, size int) uint64 { return uint64(addressOf(&hostBytes(t, size)[0])) }

func TestRegisterHost(t *testing.T) {
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	bytes := hostBytes(t, 4096)
	released := 0
	b, err := c.RegisterHost(HostRegistration{Ptr: uint64(addressOf(&bytes[0])), Size: 4096, Release: func() { released++ }})
	require.NoError(t, err)
	require.Equal(t, PinnedMemory, b.Kind())
	require.Equal(t, map[string]int{"Stream": 1, "Allocation": 1}, c.drv.Live())
	view, err := b.Slice(8, 4)
	require.NoError(t, err)
	require.NoError(t, Launch(s, one(), kernel(t, c, "poke"), view))
	require.NoError(t, b.Close())
	require.Zero(t, released, "the view holds the registration")
	require.NoError(t, view.Close())
	require.Equal(t, 1, released)
	require.Equal(t, byte(7), bytes[8], "the memory was let go of after the work that uses it")
}

func TestRegisterHostRefuses(t *testing.T) {
	c := openSimulated(t, Options{})
	p := hostMemory(t, 8192)
	_, err := c.RegisterHost(HostRegistration{Ptr: p})
	require.EqualError(t, err, "host memory must have at least 1 byte to be registered, got 0")
	b, err := c.RegisterHost(HostRegistration{Ptr: p, Size: 100})
	require.NoError(t, err)
	_, err = c.RegisterHost(HostRegistration{Ptr: p + 50, Size: 100})
	require.ErrorIs(t, err, ErrorHostMemoryAlreadyRegistered)
	require.ErrorContains(t, err, "are registered already")
	_, err = c.RegisterHost(HostRegistration{Ptr: 4096, Size: 100})
	require.ErrorIs(t, err, ErrorInvalidValue)
	require.ErrorContains(t, err, "not mapped")
	require.NoError(t, b.Close())

	stub, c := openStub(t)
	stub.attrs[driver.CUdevice_attribute(ReadOnlyHostRegisterSupported)] = 0
	_, err = c.RegisterHost(HostRegistration{Ptr: p, Size: 100, ReadOnly: true})
	require.ErrorIs(t, err, ErrorNotSupported)
	stub.attrs[driver.CUdevice_attribute(HostRegisterSupported)] = 0
	_, err = c.RegisterHost(HostRegistration{Ptr: p, Size: 100})
	require.ErrorIs(t, err, ErrorNotSupported)
	require.Zero(t, stub.count("cuMemHostRegister"))
}

// The work of every device may use the memory.
func TestUnregisterWaitsForAllContexts(t *testing.T) {
	stub, c := openStub(t)
	other, err := c.drv.Device(1)
	require.NoError(t, err)
	_, err = other.Context()
	require.NoError(t, err)
	released := false
	b, err := c.RegisterHost(HostRegistration{Ptr: 0x70000, Size: 64, Release: func() { released = true }})
	require.NoError(t, err)
	stub.on = func(call string) driver.CUresult {
		require.False(t, released && call != "cuCtxPopCurrent", "%s after the release", call)
		return driver.CUDA_SUCCESS
	}
	stub.calls = nil
	require.NoError(t, b.Close())
	require.True(t, released)
	calls := slices.DeleteFunc(stub.calls, func(call string) bool { return call != "cuCtxSynchronize" && call != "cuMemHostUnregister" })
	require.Equal(t, []string{"cuCtxSynchronize", "cuCtxSynchronize", "cuMemHostUnregister"}, calls)
}

// Waiting for a context would invalidate a capture in it.
func TestUnregisterWaitsForCaptures(t *testing.T) {
	stub, c := openStub(t)
	s := newTestStream(t, c, StreamOptions{})
	require.False(t, c.drv.Capturing())
	require.NoError(t, s.BeginCapture(CaptureGlobal))
	require.True(t, c.drv.Capturing())
	released, asked := false, 0
	c.drv.OnCaptureEnd(func() { asked++ })
	b, err := c.RegisterHost(HostRegistration{Ptr: 0x70000, Size: 64, Release: func() { released = true }})
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.Equal(t, 1, c.Drain(), "still capturing")
	require.Zero(t, stub.count("cuCtxSynchronize"))
	require.False(t, released)
	require.Zero(t, asked, "it would be asked again and again until the capture ends")
	c.drv.OnCaptureEnd(nil)
	_, err = s.EndCapture()
	require.NoError(t, err)
	require.False(t, c.drv.Capturing())
	require.True(t, released)
}

func TestCapturesAreCounted(t *testing.T) {
	stub, c := openStub(t)
	a, b := newTestStream(t, c, StreamOptions{}), newTestStream(t, c, StreamOptions{})
	fail := driver.CUDA_ERROR_ILLEGAL_STATE
	stub.on = func(call string) driver.CUresult {
		if call == "cuStreamBeginCapture" || call == "cuStreamEndCapture" {
			return fail
		}
		return driver.CUDA_SUCCESS
	}
	require.Error(t, a.BeginCapture(CaptureGlobal))
	require.False(t, c.drv.Capturing(), "it did not begin")
	fail = driver.CUDA_SUCCESS
	require.NoError(t, a.BeginCapture(CaptureGlobal))
	require.NoError(t, b.BeginCapture(CaptureGlobal))
	fail = driver.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
	_, err := a.EndCapture()
	require.Error(t, err)
	require.True(t, c.drv.Capturing(), "it goes on")
	fail = driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
	_, err = a.EndCapture()
	require.Error(t, err)
	fail = driver.CUDA_SUCCESS
	_, err = b.EndCapture()
	require.NoError(t, err)
	require.False(t, c.drv.Capturing())
}

// A caller that believes the memory to be unregistered might unmap it.
func TestFailedUnregisterKeepsTheMemory(t *testing.T) {
	stub, c := openStub(t)
	var warnings []string
	c.drv.OnWarning(func(err error) { warnings = append(warnings, err.Error()) })
	b, err := c.RegisterHost(HostRegistration{Ptr: 0x70000, Size: 64, Release: func() { t.Error("released") }})
	require.NoError(t, err)
	stub.on = func(call string) driver.CUresult {
		if call == "cuMemHostUnregister" {
			return driver.CUDA_ERROR_UNKNOWN
		}
		return driver.CUDA_SUCCESS
	}
	require.NoError(t, b.Close())
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "cannot release 64 bytes of pinned memory at 0x70000: cuMemHostUnregister")
	require.Equal(t, map[string]int{"Allocation": 1}, c.drv.Live())
}
