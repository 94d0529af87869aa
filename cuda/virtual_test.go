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

// page is the granularity of the simulated device.
const page = 2 << 20

// ledger is a driver that keeps account of virtual memory, and can put
// reservations elsewhere than the hint says.
type ledger struct {
	driver.API
	elsewhere bool

	mu       sync.Mutex
	reserved map[driver.CUdeviceptr]uint64                // guarded by mu
	mapped   map[driver.CUdeviceptr]uint64                // guarded by mu
	handles  map[driver.CUmemGenericAllocationHandle]bool // guarded by mu
}

func newLedger(api driver.API) *ledger {
	return &ledger{
		API: api, reserved: map[driver.CUdeviceptr]uint64{}, mapped: map[driver.CUdeviceptr]uint64{},
		handles: map[driver.CUmemGenericAllocationHandle]bool{},
	}
}

// held is how many reservations, mappings and handles there are.
func (l *ledger) held() [3]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return [3]int{len(l.reserved), len(l.mapped), len(l.handles)}
}

// note changes an account if the call went well.
func (l *ledger) note(r driver.CUresult, change func()) driver.CUresult {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r == driver.CUDA_SUCCESS {
		change()
	}
	return r
}

func (l *ledger) CuMemAddressReserve(size, alignment uint64, addr driver.CUdeviceptr, flags uint64) (driver.CUdeviceptr, driver.CUresult) {
	if l.elsewhere {
		addr = 0
	}
	p, r := l.API.CuMemAddressReserve(size, alignment, addr, flags)
	return p, l.note(r, func() { l.reserved[p] = size })
}

func (l *ledger) CuMemAddressFree(p driver.CUdeviceptr, size uint64) driver.CUresult {
	return l.note(l.API.CuMemAddressFree(p, size), func() { delete(l.reserved, p) })
}

func (l *ledger) CuMemCreate(size uint64, prop *driver.CUmemAllocationProp, flags uint64) (driver.CUmemGenericAllocationHandle, driver.CUresult) {
	h, r := l.API.CuMemCreate(size, prop, flags)
	return h, l.note(r, func() { l.handles[h] = true })
}

func (l *ledger) CuMemImportFromShareableHandle(fd int32, typ driver.CUmemAllocationHandleType) (driver.CUmemGenericAllocationHandle, driver.CUresult) {
	h, r := l.API.CuMemImportFromShareableHandle(fd, typ)
	return h, l.note(r, func() { l.handles[h] = true })
}

func (l *ledger) CuMemRelease(h driver.CUmemGenericAllocationHandle) driver.CUresult {
	return l.note(l.API.CuMemRelease(h), func() { delete(l.handles, h) })
}

func (l *ledger) CuMemMap(p driver.CUdeviceptr, size, offset uint64, h driver.CUmemGenericAllocationHandle, flags uint64) driver.CUresult {
	return l.note(l.API.CuMemMap(p, size, offset, h, flags), func() { l.mapped[p] = size })
}

func (l *ledger) CuMemUnmap(p driver.CUdeviceptr, size uint64) driver.CUresult {
	return l.note(l.API.CuMemUnmap(p, size), func() { delete(l.mapped, p) })
}

// openVirtual is openSimulated with a ledger behind a faulty driver. When the
// test ends, the ledger must be empty.
func openVirtual(t *testing.T, config string) (*Context, *fault.Driver, *ledger) {
	t.Helper()
	var faults *fault.Driver
	var l *ledger
	wrap := wrapForTest
	wrapForTest = func(api driver.API) driver.API {
		l = newLedger(api)
		faults = fault.New(l)
		return faults
	}
	c := openSimulated(t, Options{Sim: config})
	wrapForTest = wrap
	t.Cleanup(func() { require.Zero(t, l.held()) })
	return c, faults, l
}

func virtualResource(t *testing.T, c *Context, reserve uint64) *VirtualMemoryResource {
	t.Helper()
	mr, err := NewVirtualMemoryResource(c.dev, VirtualOptions{Reserve: reserve})
	require.NoError(t, err)
	require.EqualValues(t, page, mr.Granularity())
	return mr
}

func TestGrow(t *testing.T) {
	c, _, l := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	b := allocate(t, virtualResource(t, c, 0), 12, s)
	require.Equal(t, DeviceMemory, b.Kind())
	require.NoError(t, b.CopyFromHost(floats(1, 2, 3), s))
	slice, err := b.Slice(0, 12)
	require.NoError(t, err)
	defer slice.Close()
	ptr := b.Ptr()

	for _, size := range []uint64{16, page, page + 4, 5*page + 8} {
		require.NoError(t, b.Grow(size))
		require.Equal(t, size, b.Size())
		require.Equal(t, ptr, b.Ptr())
		base, whole := b.Allocation()
		require.Equal(t, []uint64{ptr, size}, []uint64{base, whole})
		tail, err := b.Slice(size-4, 4)
		require.NoError(t, err)
		require.NoError(t, tail.Fill(9, 4, s))
		require.NoError(t, tail.Close())
	}
	require.Equal(t, [3]int{1, 3, 3}, l.held(), "pieces where the granularity asks for one")
	require.EqualValues(t, 12, slice.Size())
	require.NoError(t, Launch(s, one(), kernel(t, c, "saxpy"), 2.0, slice, b, 1))
	got := make([]byte, 12)
	require.NoError(t, slice.CopyToHost(got, s))
	require.Equal(t, floats(3, 2, 3), got)
	across, err := b.Slice(page-4, 12)
	require.NoError(t, err)
	require.NoError(t, across.CopyFromHost(floats(4, 5, 6), s))
	require.NoError(t, across.CopyToHost(got, s))
	require.Equal(t, floats(4, 5, 6), got)
	require.NoError(t, across.Close())
}

func TestGrowBehindTheReservation(t *testing.T) {
	c, _, l := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	b := allocate(t, virtualResource(t, c, 2*page), page, s)
	require.NoError(t, b.Grow(4*page))
	require.Equal(t, [3]int{2, 3, 3}, l.held())
	require.NoError(t, b.Fill(7, 1, s))

	l.elsewhere = true
	for range 2 {
		err := b.Grow(4*page + 1)
		require.ErrorIs(t, err, ErrorOutOfMemory)
		require.EqualError(t, err, "cuMemAddressReserve: CUDA_ERROR_OUT_OF_MEMORY: out of memory (a buffer of 8388608 bytes on device 0 "+
			"cannot grow to 8388609 bytes where it is: 8388608 bytes of addresses are reserved for it, and those behind them are taken; "+
			"reserve more when allocating)")
		require.EqualValues(t, 4*page, b.Size())
		require.Equal(t, [3]int{2, 3, 3}, l.held())
	}
	got := make([]byte, 4*page)
	require.NoError(t, b.CopyToHost(got, s))
	require.EqualValues(t, 7, got[len(got)-1])
}

func TestGrowPastTheMemory(t *testing.T) {
	c, _, l := openVirtual(t, "memory=8MiB")
	s := newTestStream(t, c, StreamOptions{})
	mr := virtualResource(t, c, 32<<20)
	b := allocate(t, mr, page, s)
	err := b.Grow(16 << 20)
	require.EqualError(t, err, "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY: out of memory (14680064 bytes on device 0)")
	require.EqualValues(t, page, b.Size())
	require.NoError(t, b.Grow(8<<20))
	require.ErrorIs(t, b.Grow(1<<60), ErrorOutOfMemory)
	_, err = mr.Allocate(page, s)
	require.ErrorIs(t, err, ErrorOutOfMemory)
	require.Equal(t, 1, l.held()[0])
}

func TestGrowArguments(t *testing.T) {
	c, _, l := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	mr := virtualResource(t, c, 0)
	b := allocate(t, mr, 8, s)
	require.EqualError(t, b.Grow(7), "size must be at least 8 bytes, what the buffer has: it can only grow; got 7")
	require.NoError(t, b.Grow(8))
	slice, err := b.Slice(0, 8)
	require.NoError(t, err)
	defer slice.Close()
	require.ErrorContains(t, slice.Grow(16), "cannot grow: it is a slice of another one")
	require.ErrorContains(t, allocate(t, device(t, c), 8, s).Grow(16), "cannot grow: it was not allocated by a virtual memory resource")

	_, err = mr.Allocate(8, nil)
	require.EqualError(t, err, "stream is required: virtual memory is released when a stream has completed")
	empty := allocate(t, mr, 0, s)
	require.Zero(t, empty.Ptr())
	require.ErrorContains(t, empty.Grow(8), "cannot grow")
	require.NoError(t, mr.Close())
	_, err = mr.Allocate(8, s)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, b.Grow(16), "a buffer outlives its resource")
	require.Equal(t, 1, l.held()[0])

	gone, err := virtualResource(t, c, 0).Allocate(8, s)
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	require.ErrorIs(t, gone.Grow(16), ErrClosed)
}

// Nothing stays behind, whatever was allocated, grown and closed.
func TestVirtualMemoryComesBack(t *testing.T) {
	c, _, l := openVirtual(t, "memory=8GiB")
	s := newTestStream(t, c, StreamOptions{})
	mr := virtualResource(t, c, 0)
	before, _, err := c.dev.MemInfo()
	require.NoError(t, err)
	var all []*Buffer
	for i := range 64 {
		b, err := mr.Allocate(64<<20, s)
		require.NoError(t, err)
		if i%8 == 0 {
			require.NoError(t, b.Grow(100<<20))
		}
		all = append(all, b)
	}
	require.Equal(t, [3]int{64, 72, 72}, l.held())
	for _, b := range all {
		require.NoError(t, b.Close())
	}
	after, _, err := c.dev.MemInfo()
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Zero(t, l.held())
}

// Unmapping waits for the stream: the kernel would fault otherwise.
func TestVirtualMemoryIsUnmappedAfterItsStream(t *testing.T) {
	c, faults, _ := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	b, err := virtualResource(t, c, 0).Allocate(4*page, s)
	require.NoError(t, err)
	poke := kernel(t, c, "poke")
	for range 20 {
		require.NoError(t, b.Fill(1, 1, s))
		require.NoError(t, Launch(s, one(), poke, b))
	}
	looks := faults.Calls("CuStreamQuery")
	require.NoError(t, b.Close())
	require.Greater(t, faults.Calls("CuStreamQuery"), looks)
	require.NoError(t, s.Synchronize())
}

func TestVirtualMemoryIsReleasedAfterACapture(t *testing.T) {
	c, _, l := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	b, err := virtualResource(t, c, 0).Allocate(page, s)
	require.NoError(t, err)
	require.NoError(t, s.BeginCapture(CaptureGlobal))
	require.NoError(t, b.Grow(2*page), "growing is no part of the capture")
	require.NoError(t, b.Close())
	require.Equal(t, [3]int{1, 2, 2}, l.held())
	g, err := s.EndCapture()
	require.NoError(t, err)
	require.NoError(t, c.GraphDestroy(g))
	c.Drain()
	require.Zero(t, l.held())
}

func TestFailedAllocationLeavesNothing(t *testing.T) {
	c, faults, l := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	mr := virtualResource(t, c, page)
	live := c.drv.Live()
	failEach(t, faults, func() (io.Closer, error) { return mr.Allocate(page, s) }, func(t *testing.T, call string) {
		require.Zero(t, l.held(), "after %s failed", call)
		require.Equal(t, live, c.drv.Live(), "after %s failed", call)
	})
	failEach(t, faults, func() (io.Closer, error) { return NewVirtualMemoryResource(c.dev, VirtualOptions{}) }, func(*testing.T, string) {})
}

// A growth that fails, in its reservation or behind it, changes nothing, and the
// next one works.
func TestFailedGrowthChangesNothing(t *testing.T) {
	c, faults, l := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	mr := virtualResource(t, c, 2*page)
	failed := map[string]int{}
	for _, call := range []string{"CuCtxGetCurrent", "CuMemAddressReserve", "CuMemCreate", "CuMemMap", "CuMemSetAccess"} {
		for n := 1; ; n++ {
			b := allocate(t, mr, page, s)
			require.NoError(t, b.Fill(5, 1, s))
			before := l.held()
			faults.Fail(call, n, driver.CUDA_ERROR_UNKNOWN)
			err := b.Grow(4 * page)
			if faults.Clear() {
				require.NoError(t, err)
				break
			}
			failed[call]++
			require.ErrorIs(t, err, ErrorUnknown, call)
			require.EqualValues(t, page, b.Size(), "after %s failed", call)
			require.Equal(t, before, l.held(), "after %s failed", call)
			require.NoError(t, b.Grow(4*page))
			got := make([]byte, 4*page)
			require.NoError(t, b.CopyToHost(got, s))
			require.EqualValues(t, 5, got[page-1])
		}
	}
	want := map[string]int{"CuCtxGetCurrent": 1, "CuMemAddressReserve": 1, "CuMemCreate": 2, "CuMemMap": 2, "CuMemSetAccess": 2}
	require.Equal(t, want, failed)
}

// What could not be undone is undone by the next growth, and at the end.
func TestGrowthThatCannotBeUndone(t *testing.T) {
	c, faults, l := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	b, err := virtualResource(t, c, 0).Allocate(page, s)
	require.NoError(t, err)
	faults.Fail("CuMemSetAccess", 1, driver.CUDA_ERROR_UNKNOWN)
	faults.Fail("CuMemUnmap", 1, driver.CUDA_ERROR_ILLEGAL_STATE)
	err = b.Grow(2 * page)
	require.ErrorContains(t, err, "cuMemSetAccess: CUDA_ERROR_UNKNOWN")
	require.ErrorContains(t, err, "cuMemUnmap: CUDA_ERROR_ILLEGAL_STATE")
	require.ErrorIs(t, err, ErrorUnknown)
	require.EqualValues(t, page, b.Size())
	require.Equal(t, [3]int{1, 2, 2}, l.held())
	require.NoError(t, b.Grow(3*page))
	require.Equal(t, [3]int{1, 2, 2}, l.held())
	require.NoError(t, b.Fill(1, 1, s))

	var warnings []string
	c.drv.OnWarning(func(err error) { warnings = append(warnings, err.Error()) })
	faults.Fail("CuMemRelease", 1, driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
	require.NoError(t, b.Close())
	require.Equal(t, [3]int{1, 1, 2}, l.held(), "it is tried again later")
	c.Drain()
	require.Zero(t, l.held())

	b, err = virtualResource(t, c, 0).Allocate(page, s)
	require.NoError(t, err)
	faults.Fail("CuMemAddressFree", 1, driver.CUDA_ERROR_UNKNOWN)
	require.NoError(t, b.Close())
	require.Len(t, warnings, 1)
	require.Regexp(t, `^cannot release 2097152 bytes of device memory at 0x\w+: cuMemAddressFree: CUDA_ERROR_UNKNOWN`, warnings[0])
	require.Equal(t, [3]int{1, 0, 0}, l.held())
	require.Equal(t, map[string]int{"Stream": 1, "Allocation": 1}, c.drv.Live())
	// As the driver still has it, so that the test's accounts close.
	require.Zero(t, l.CuMemAddressFree(driver.CUdeviceptr(b.Ptr()), l.reserved[driver.CUdeviceptr(b.Ptr())]))
	c.drv.live.allocations.Add(-1)
}

func TestReserveLessWhereThereIsNotEnough(t *testing.T) {
	c, faults, l := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	generous := allocate(t, virtualResource(t, c, 0), page, s)
	require.EqualValues(t, 2<<30, l.reserved[driver.CUdeviceptr(generous.Ptr())])
	faults.Fail("CuMemAddressReserve", 1, driver.CUDA_ERROR_OUT_OF_MEMORY)
	b := allocate(t, virtualResource(t, c, 0), page, s)
	require.EqualValues(t, page, l.reserved[driver.CUdeviceptr(b.Ptr())])
	faults.Fail("CuMemAddressReserve", 1, driver.CUDA_ERROR_OUT_OF_MEMORY)
	_, err := virtualResource(t, c, 1<<40).Allocate(page, s)
	require.EqualError(t, err, "cuMemAddressReserve: CUDA_ERROR_OUT_OF_MEMORY: out of memory (1099511627776 bytes of addresses)")
}

func TestVirtualMemoryOfADeviceWithoutIt(t *testing.T) {
	_, c := openStub(t)
	_, err := NewVirtualMemoryResource(c.dev, VirtualOptions{})
	require.ErrorIs(t, err, ErrorNotSupported)
	require.ErrorContains(t, err, "device 0 has no virtual memory management")
}

func TestGrowHammer(t *testing.T) {
	c, _, _ := openVirtual(t, "")
	s := newTestStream(t, c, StreamOptions{})
	mr := virtualResource(t, c, 4*page)
	poke := kernel(t, c, "poke")
	for range 5 {
		b, err := mr.Allocate(8, s)
		require.NoError(t, err)
		var wg sync.WaitGroup
		for i := range uint64(4) {
			wg.Go(func() {
				for n := range uint64(3) {
					// A thread that is late gets the error that the buffer
					// would shrink.
					_ = b.Grow((n*4 + i) * page / 2)
					_ = b.String()
				}
			})
			wg.Go(func() {
				for range 5 {
					if err := Launch(s, one(), poke, b); err != nil {
						t.Error(err)
					}
					v, err := b.Slice(b.Size()-4, 4)
					if err != nil {
						t.Error(err)
						return
					}
					v.Close()
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 11*page/2, b.Size())
		require.NoError(t, b.Close())
	}
}
