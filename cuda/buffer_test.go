// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/fault"
)

// stubBuffer returns 16 bytes of device memory on a stream of its own.
func stubBuffer(t *testing.T, c *Context) (*Buffer, *Stream) {
	t.Helper()
	mr, err := c.dev.DefaultMemoryResource()
	require.NoError(t, err)
	s := newTestStream(t, c, StreamOptions{})
	b, err := mr.Allocate(16, s)
	require.NoError(t, err)
	return b, s
}

func TestBufferLastHolderFrees(t *testing.T) {
	stub, c := openStub(t)
	b, _ := stubBuffer(t, c)
	require.NoError(t, b.Retain())
	slice, err := b.Slice(4, 8)
	require.NoError(t, err)
	require.Equal(t, b.Ptr()+4, slice.Ptr())
	require.True(t, slice.SameAllocation(b))

	require.NoError(t, b.Close())
	require.NoError(t, b.Close(), "closing twice")
	require.True(t, b.IsClosed())
	require.NoError(t, slice.Close())
	require.Zero(t, stub.count("cuMemFreeAsync"), "still retained")
	require.NoError(t, b.Retain(), "the memory is there, whatever became of b")
	b.Release()
	b.Release()
	require.Equal(t, 1, stub.count("cuMemFreeAsync"))
	require.ErrorIs(t, b.Retain(), ErrClosed)
}

// A stream that another thread closes during an allocation is kept until the
// memory is freed, as one that is closed afterwards.
func TestStreamIsClosedDuringAnAllocation(t *testing.T) {
	stub, c := openStub(t)
	mr, err := c.dev.DefaultMemoryResource()
	require.NoError(t, err)
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	stub.on = func(call string) driver.CUresult {
		if call == "cuMemAllocFromPoolAsync" {
			require.NoError(t, s.Close())
		}
		return driver.CUDA_SUCCESS
	}
	b, err := mr.Allocate(16, s)
	require.NoError(t, err)
	require.Zero(t, stub.count("cuStreamDestroy"))
	require.NoError(t, b.Close())
	require.Equal(t, 1, stub.count("cuMemFreeAsync"))
	require.Equal(t, 1, stub.count("cuStreamDestroy"))
	require.Empty(t, c.drv.Live())
}

// permissions counts what device work may access of the host's memory.
type permissions struct {
	driver.API
	given map[uint64]int // by size
}

func (p *permissions) AllowHost(_ uintptr, size uint64, _ bool)    { p.given[size]++ }
func (p *permissions) DisallowHost(_ uintptr, size uint64, _ bool) { p.given[size]-- }

func TestCopyOfHostMemoryTakesItsPermissionBack(t *testing.T) {
	api := &permissions{API: newStub(), given: map[uint64]int{}}
	d, err := newDriver(api)
	require.NoError(t, err)
	dev, err := d.Device(0)
	require.NoError(t, err)
	c, err := dev.Context()
	require.NoError(t, err)
	s := newTestStream(t, c, StreamOptions{})
	fixed, s2 := stubBuffer(t, c)
	require.Same(t, c, s2.ctx)
	v := &virtualMemory{}
	v.size.Store(32)
	grown := newBuffer(&allocation{ctx: c, kind: DeviceMemory, base: 1 << 20, virtual: v, free: func(_ *allocation, s *Stream) { unuse(s) }})
	grown.whole = true
	for _, b := range []*Buffer{fixed, grown} {
		host := make([]byte, b.Size())
		require.NoError(t, b.CopyFromHost(host, s))
		require.NoError(t, b.CopyToHost(host, s))
		require.NoError(t, b.Close())
	}
	require.Equal(t, map[uint64]int{16: 0, 32: 0}, api.given)
}

// The stub panics on a free on a dead stream.
func TestBufferKeepsItsStream(t *testing.T) {
	stub, c := openStub(t)
	b, s := stubBuffer(t, c)
	require.NoError(t, s.Close())
	require.Zero(t, stub.count("cuStreamDestroy"))
	require.NoError(t, b.Close())
	require.Equal(t, 1, stub.count("cuMemFreeAsync"))
	require.Equal(t, 1, stub.count("cuStreamDestroy"))
	require.Empty(t, c.drv.Live())
}

func TestBufferCloseOnAnotherStream(t *testing.T) {
	stub, c := openStub(t)
	b, first := stubBuffer(t, c)
	second := newTestStream(t, c, StreamOptions{})
	require.Same(t, first, b.Stream())
	require.NoError(t, b.SetStream(second))
	require.Same(t, second, b.Stream())
	require.NoError(t, first.Close())
	require.Equal(t, 1, stub.count("cuStreamDestroy"), "the buffer let go of the first stream")
	require.NoError(t, b.CloseOn(second))
	require.NoError(t, b.CloseOn(second), "closing twice")
	require.Equal(t, 1, stub.count("cuMemFreeAsync"))
	require.ErrorIs(t, b.SetStream(second), ErrClosed)
}

// The last holder may let go in another thread, whose per-thread default stream
// is another one.
func TestFreeOfMemoryOnThePerThreadStream(t *testing.T) {
	stub, c := openStub(t)
	mr, err := c.dev.DefaultMemoryResource()
	require.NoError(t, err)
	b, err := mr.Allocate(16, c.DefaultStream(PerThread))
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.Equal(t, driver.CU_STREAM_LEGACY, stub.freedOn)
	require.Zero(t, stub.living())
}

func TestBufferFreeWaitsForTheCapture(t *testing.T) {
	stub, c := openStub(t)
	b, s := stubBuffer(t, c)
	stub.setStatus(s, driver.CU_STREAM_CAPTURE_STATUS_ACTIVE)
	require.NoError(t, b.Close())
	require.Zero(t, stub.count("cuMemFreeAsync"))
	require.Equal(t, map[string]int{"Stream": 1, "Allocation": 1}, c.drv.Live())
	_, err := s.EndCapture()
	require.NoError(t, err)
	require.Equal(t, 1, stub.count("cuMemFreeAsync"))
}

// A free that the driver refuses because of a capture elsewhere is tried again.
func TestFreeRefusedByACapture(t *testing.T) {
	stub, c := openStub(t)
	mr, err := NewPinnedMemoryResource(c.dev)
	require.NoError(t, err)
	b, err := mr.Allocate(16, nil)
	require.NoError(t, err)
	stub.on = func(call string) driver.CUresult {
		if call == "cuMemFreeHost" {
			return driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
		}
		return driver.CUDA_SUCCESS
	}
	require.NoError(t, b.Close())
	require.Equal(t, 1, c.drv.Drain())
	stub.on = nil
	require.Zero(t, c.drv.Drain())
	require.Zero(t, stub.living())
	require.Empty(t, c.drv.Live())
}

func TestAllocateWhileCapturing(t *testing.T) {
	stub, c := openStub(t)
	b, s := stubBuffer(t, c)
	defer b.Close()
	stub.setStatus(s, driver.CU_STREAM_CAPTURE_STATUS_ACTIVE)
	defer stub.setStatus(s, driver.CU_STREAM_CAPTURE_STATUS_NONE)
	_, err := b.Resource().Allocate(16, s)
	require.ErrorIs(t, err, ErrorStreamCaptureUnsupported)
	require.ErrorContains(t, err, "allocate before the capture begins")
	require.ErrorIs(t, b.CopyFromHost(make([]byte, 16), s), ErrorStreamCaptureUnsupported)
}

func TestAllocateBeside(t *testing.T) {
	stub, c := openStub(t)
	s := newTestStream(t, c, StreamOptions{})
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
	require.NoError(t, err)
	stub.setStatus(s, driver.CU_STREAM_CAPTURE_STATUS_ACTIVE)
	ptr, err := mr.AllocateBeside(16)
	require.NoError(t, err)
	require.NotZero(t, ptr)
	stub.setStatus(s, driver.CU_STREAM_CAPTURE_STATUS_NONE)
	require.NoError(t, c.FreeAsync(ptr, s))
	for _, call := range []string{"cuStreamCreate", "cuMemAllocFromPoolAsync", "cuStreamSynchronize"} {
		stub.on = func(now string) driver.CUresult {
			if strings.HasPrefix(now, call) {
				return driver.CUDA_ERROR_OUT_OF_MEMORY
			}
			return driver.CUDA_SUCCESS
		}
		_, err = mr.AllocateBeside(16)
		require.ErrorIs(t, err, ErrorOutOfMemory, call)
	}
	stub.on = nil
	require.Equal(t, stub.count("cuMemAllocFromPoolAsync")-1, stub.count("cuMemFreeAsync"), "all but the one that failed")
	require.NoError(t, mr.Close())
}

// Whichever call fails, the caller has the memory or nobody has it: a call that
// cleans up is a warning.
func TestFailedAllocateBesideLosesNothing(t *testing.T) {
	stub, c := openStub(t)
	faults := fault.New(stub)
	c.drv.api = faults
	t.Run("stub", func(t *testing.T) {
		failBeside(t, c, faults, func(t *testing.T, mr *DeviceMemoryResource) int {
			return stub.count("cuMemAllocFromPoolAsync") - stub.count("cuMemFreeAsync")
		})
	})
	faults, c = openFaulty(t)
	t.Run("simulated", func(t *testing.T) {
		failBeside(t, c, faults, func(t *testing.T, mr *DeviceMemoryResource) int {
			st, err := mr.Statistics()
			require.NoError(t, err)
			return int(st.Used)
		})
	})
}

func failBeside(t *testing.T, c *Context, faults *fault.Driver, used func(*testing.T, *DeviceMemoryResource) int) {
	runtime.LockOSThread() // what a call sets for the thread is set again below
	defer runtime.UnlockOSThread()
	s := newTestStream(t, c, StreamOptions{})
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
	require.NoError(t, err)
	defer mr.Close()
	var warnings []error
	c.drv.OnWarning(func(err error) { warnings = append(warnings, err) })
	defer c.drv.OnWarning(nil)
	live, failed, made := c.drv.Live(), 0, 0
	for call := range seamCalls() {
		for n := 1; ; n++ {
			warnings = nil
			faults.Fail(call, n, driver.CUDA_ERROR_UNKNOWN)
			ptr, err := mr.AllocateBeside(512)
			if faults.Clear() { // there is no such call
				require.NoError(t, err)
				require.NoError(t, c.FreeAsync(ptr, s))
				break
			}
			faults.CuThreadExchangeStreamCaptureMode(driver.CU_STREAM_CAPTURE_MODE_GLOBAL)
			c.Drain() // a stream whose context could not be entered
			if strings.HasPrefix(call, "CuStreamDestroy") {
				require.NoError(t, err, "%s, call %d", call, n)
				require.Len(t, warnings, 1)
				require.ErrorIs(t, warnings[0], ErrorUnknown)
				live = c.drv.Live() // that of the stream stays
			}
			if err != nil {
				require.Zero(t, ptr, "%s, call %d", call, n)
				failed++
			} else {
				require.NotZero(t, ptr, "%s, call %d", call, n)
				require.NoError(t, c.FreeAsync(ptr, s))
				made++
			}
			require.NoError(t, s.Synchronize())
			require.Zero(t, used(t, mr), "%s, call %d", call, n)
			require.Equal(t, live, c.drv.Live(), "%s, call %d", call, n)
		}
	}
	require.NotZero(t, failed)
	require.NotZero(t, made)
	// Two in a row: the memory stays in the counts, and is reported.
	warnings = nil
	faults.Fail("CuStreamSynchronize", 1, driver.CUDA_ERROR_UNKNOWN)
	faults.Fail("CuMemFreeAsync", 1, driver.CUDA_ERROR_UNKNOWN)
	_, err = mr.AllocateBeside(512)
	require.ErrorIs(t, err, ErrorUnknown)
	require.Equal(t, live["Allocation"]+1, c.drv.Live()["Allocation"])
	require.Len(t, warnings, 1)
	require.ErrorContains(t, warnings[0], "512 bytes of device memory")
	c.deferred.clearStuck() // they are never released
}

func TestAllocateArguments(t *testing.T) {
	_, c := openStub(t)
	other, err := c.drv.Device(1)
	require.NoError(t, err)
	mr, err := NewDeviceMemoryResource(other, PoolOptions{})
	require.NoError(t, err)
	s := newTestStream(t, c, StreamOptions{})
	_, err = mr.Allocate(1, nil)
	require.EqualError(t, err, "stream is required: device memory is allocated in the order of a stream")
	_, err = mr.Allocate(1, s)
	require.EqualError(t, err, "stream must be of device 1, as the pool is, got one of device 0")
	require.NoError(t, mr.Close())
	require.True(t, mr.IsClosed())
	require.Equal(t, 1, mr.ctx.nParked())
	onOther := &Stream{ctx: mr.ctx, kind: foreignStream}
	_, err = mr.Allocate(1, onOther)
	require.ErrorIs(t, err, ErrClosed)
}

func TestOutOfMemoryNamesTheSize(t *testing.T) {
	stub, c := openStub(t)
	b, s := stubBuffer(t, c)
	defer b.Close()
	stub.on = func(call string) driver.CUresult {
		if call == "cuMemAllocFromPoolAsync" {
			return driver.CUDA_ERROR_OUT_OF_MEMORY
		}
		return driver.CUDA_SUCCESS
	}
	_, err := b.Resource().Allocate(1<<40, s)
	require.EqualError(t, err, "cuMemAllocFromPoolAsync: CUDA_ERROR_OUT_OF_MEMORY: out of memory (1099511627776 bytes on device 0)")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.EqualValues(t, 1<<40, e.Requested)
}

func TestEmptyBuffer(t *testing.T) {
	stub, c := openStub(t)
	b, s := stubBuffer(t, c)
	defer b.Close()
	pinned, err := NewPinnedMemoryResource(c.dev)
	require.NoError(t, err)
	for _, mr := range []MemoryResource{b.Resource(), pinned} {
		empty, err := mr.Allocate(0, s)
		require.NoError(t, err)
		require.Zero(t, empty.Ptr())
		require.Zero(t, empty.Size())
		require.NoError(t, empty.Fill(0, 4, s))
		require.NoError(t, empty.CopyFrom(empty, s))
		require.NoError(t, empty.CopyToHost(nil, s))
		require.Nil(t, empty.Bytes())
		require.NoError(t, empty.Close())
	}
	require.Zero(t, stub.count("cuMemcpyAsync"))
	require.Zero(t, stub.count("cuMemHostAlloc"))
	require.Equal(t, 1, stub.count("cuMemAllocFromPoolAsync"))
}

func TestBufferRanges(t *testing.T) {
	_, c := openStub(t)
	b, s := stubBuffer(t, c)
	defer b.Close()
	half, err := b.Slice(8, 8)
	require.NoError(t, err)
	defer half.Close()
	const tooFar = 1<<64 - 4
	for _, r := range []struct{ offset, size uint64 }{{0, 17}, {16, 1}, {17, 0}, {8, tooFar}, {tooFar, 8}} {
		_, err := b.Slice(r.offset, r.size)
		require.ErrorContains(t, err, "is not inside the buffer of 16 bytes")
	}
	require.EqualError(t, b.CopyFrom(half, s), "src must have 16 bytes, as the destination has, got 8")
	require.EqualError(t, b.CopyTo(half, s), "dst must have 16 bytes, as the source has, got 8")
	require.EqualError(t, b.CopyFromHost(make([]byte, 15), s), "src must have 16 bytes, as the buffer has, got 15")
	require.EqualError(t, b.CopyToHost(make([]byte, 17), s), "dst must have 16 bytes, as the buffer has, got 17")
	require.EqualError(t, b.Fill(0, 3, s), "buffer of 16 bytes is not a whole number of 3-byte elements")
	require.EqualError(t, b.Fill(0, 8, s), "element size must be 1, 2 or 4 bytes, got 8")
	require.EqualError(t, b.Fill(256, 1, s), "value must fit in 1 bytes, got 256")
}

func TestClosedBuffer(t *testing.T) {
	_, c := openStub(t)
	b, s := stubBuffer(t, c)
	other, err := b.Resource().Allocate(16, s)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, b.Close())
	require.ErrorIs(t, b.Fill(0, 1, s), ErrClosed)
	require.ErrorIs(t, b.CopyFrom(other, s), ErrClosed)
	require.ErrorIs(t, other.CopyFrom(b, s), ErrClosed)
	_, err = b.Slice(0, 1)
	require.ErrorIs(t, err, ErrClosed)
}

func TestWrapBufferReleasesWithItsLastHolder(t *testing.T) {
	_, c := openStub(t)
	released := 0
	w := c.WrapBuffer(BufferInfo{Ptr: 0x100, Size: 8, Kind: HostMemory, Release: func() { released++ }})
	require.Nil(t, w.Resource())
	require.NoError(t, w.Retain())
	require.NoError(t, w.Close())
	require.Zero(t, released)
	w.Release()
	require.Equal(t, 1, released)
}

func TestAdoptFailsOnAClosedStream(t *testing.T) {
	_, c := openStub(t)
	mr, err := c.dev.DefaultMemoryResource()
	require.NoError(t, err)
	s := newTestStream(t, c, StreamOptions{})
	require.NoError(t, s.Close())
	_, err = mr.adopt(0x1000, 16, s)
	require.ErrorIs(t, err, ErrClosed)
	require.Empty(t, c.drv.Live())
}

// Pinned memory goes back once the work that may use it has completed.
func TestPinnedMemoryWaitsForItsStream(t *testing.T) {
	stub, c := openStub(t)
	mr, err := NewPinnedMemoryResource(c.dev)
	require.NoError(t, err)
	s := newTestStream(t, c, StreamOptions{})
	b, err := mr.Allocate(16, s)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.Equal(t, 1, stub.count("cuStreamQuery"))
	require.Equal(t, 1, stub.count("cuMemFreeHost"))
	require.NoError(t, mr.Close())
	_, err = mr.Allocate(16, s)
	require.ErrorIs(t, err, ErrClosed)
}

func TestManagedMemoryOfADeviceWithoutIt(t *testing.T) {
	stub, c := openStub(t)
	stub.attrs[driver.CUdevice_attribute(ManagedMemory)] = 0
	_, err := NewManagedMemoryResource(c.dev)
	require.ErrorIs(t, err, ErrorNotSupported)
}

func TestDefaultMemoryResourceIsOne(t *testing.T) {
	stub, c := openStub(t)
	first, err := c.dev.DefaultMemoryResource()
	require.NoError(t, err)
	again, err := c.dev.DefaultMemoryResource()
	require.NoError(t, err)
	require.Same(t, first, again)
	require.Equal(t, 1, stub.count("cuMemPoolSetAttribute"), "the threshold was zero")
	require.NoError(t, first.Close())
	require.False(t, first.IsClosed(), "the driver's, not ours")
	require.Zero(t, c.nParked())
}

func TestBufferHammer(t *testing.T) {
	stub, c := openStub(t)
	for range 50 {
		b, s := stubBuffer(t, c)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for b.Retain() == nil {
					b.Release()
				}
			})
			wg.Go(func() {
				for {
					v, err := b.Slice(4, 4)
					if err != nil {
						return
					}
					v.Close()
				}
			})
		}
		wg.Go(func() { b.Close(); s.Close() })
		wg.Wait()
	}
	require.Zero(t, stub.living())
	require.Empty(t, c.drv.Live())
}
