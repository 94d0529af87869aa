// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/fault"
)

// withoutLeases imports a pool as another library would have exported it.
func withoutLeases(t *testing.T, mr *DeviceMemoryResource) *ImportedMemoryResource {
	t.Helper()
	pool, leases, err := mr.Export()
	require.NoError(t, err)
	imported, err := ImportPool(mr.Device(), mr.Kind(), pool, -1)
	require.NoError(t, err)
	require.NoError(t, syscall.Close(pool))
	require.NoError(t, syscall.Close(leases))
	return imported
}

// The driver has one handle for both imports.
func TestPoolThatIsImportedAnewBeforeItIsDestroyed(t *testing.T) {
	c := openSimulated(t, Options{})
	c.drv.OnWarning(func(err error) { t.Error(err) })
	defer c.drv.OnWarning(nil)
	s, mr, b := sharedBuffer(t, c)
	before := c.drv.Live()
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	one := importOf(t, mr)
	end := c.drv.waits.begin()
	require.NoError(t, one.Close())
	require.EqualValues(t, 1, c.deferred.waiting.Load(), "for the wait")
	end()
	two := importOf(t, mr)
	require.NotEqual(t, one.importedPool, two.importedPool)
	end = c.drv.waits.begin()
	var imported *Buffer
	come := make(chan error)
	go func() {
		var err error
		imported, err = two.Import(e, s)
		come <- err
	}()
	time.Sleep(20 * time.Millisecond) // it has drained, and waits for a gap
	require.EqualValues(t, 1, c.deferred.waiting.Load())
	end()
	require.NoError(t, <-come)
	require.Zero(t, c.Drain())
	require.NoError(t, imported.Close())
	require.NoError(t, two.Close())
	require.Zero(t, c.Drain())
	require.Empty(t, c.drv.imports.handles)
	for _, x := range []io.Closer{b, mr, s} {
		require.NoError(t, x.Close())
	}
	require.Less(t, c.drv.Live()["MemoryPool"], before["MemoryPool"])
}

func TestPoolIsImportedOnce(t *testing.T) {
	c := openSimulated(t, Options{})
	s, mr, b := sharedBuffer(t, c)
	before := c.drv.Live()["MemoryPool"]
	one, two := importOf(t, mr), importOf(t, mr)
	require.Equal(t, before+1, c.drv.Live()["MemoryPool"])
	require.Equal(t, one.importedPool, two.importedPool)
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	first, err := one.Import(e, s)
	require.NoError(t, err)
	require.NoError(t, one.Close())
	_, err = one.Import(e, s)
	require.ErrorIs(t, err, ErrClosed)
	second, err := two.Import(e, s)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.NoError(t, second.Fill(7, 1, s), "it is still imported")
	require.NoError(t, two.Close())
	require.Equal(t, before+1, c.drv.Live()["MemoryPool"], "a Buffer holds it")
	require.NoError(t, second.Close())
	require.Zero(t, c.Drain())
	require.Equal(t, before, c.drv.Live()["MemoryPool"])
	require.Empty(t, c.drv.imports.pools)
	three := importOf(t, mr)
	require.NotEqual(t, one.importedPool, three.importedPool)
	for _, x := range []io.Closer{three, b, mr, s} {
		require.NoError(t, x.Close())
	}
}

// The driver has one address for all of them, and one free ends it.
func TestMemoryIsImportedOnceThroughAnyPool(t *testing.T) {
	c := openSimulated(t, Options{})
	faults := fault.New(c.drv.api)
	c.drv.api = faults
	before := c.drv.Live()
	s, mr, b := sharedBuffer(t, c)
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	pools := []*ImportedMemoryResource{withoutLeases(t, mr), importOf(t, mr), withoutLeases(t, mr)}
	var buffers []*Buffer
	for _, p := range pools {
		buffer, err := p.Import(e, s)
		require.NoError(t, err)
		buffers = append(buffers, buffer)
		require.Equal(t, buffers[0].Ptr(), buffer.Ptr())
		require.NoError(t, p.Close())
	}
	wrong := e
	wrong.Size--
	other := withoutLeases(t, mr)
	_, err = other.Import(wrong, s)
	require.ErrorContains(t, err, "has 4095 bytes, and an earlier one said 4096")
	require.NoError(t, other.Close())
	frees := faults.Calls("CuMemFree")
	require.NoError(t, buffers[1].Close())
	require.NoError(t, buffers[0].Close())
	require.Zero(t, c.Drain())
	require.Equal(t, frees, faults.Calls("CuMemFree"))
	require.NoError(t, b.Close())
	require.Equal(t, 1, c.Drain(), "the lease of the pool that has one lasts as long as the memory is imported")
	require.NoError(t, buffers[2].Fill(7, 1, s))
	require.NoError(t, s.Synchronize())
	require.NoError(t, buffers[2].Close())
	require.Zero(t, c.Drain())
	require.Equal(t, frees+1, faults.Calls("CuMemFree"))
	require.Empty(t, c.drv.imports.memory)
	require.NoError(t, mr.Close())
	require.NoError(t, s.Close())
	require.Equal(t, before, c.drv.Live())
}

func TestImportOfMoreThanThereIs(t *testing.T) {
	c := openSimulated(t, Options{})
	faults := fault.New(c.drv.api)
	c.drv.api = faults
	var warned []error
	c.drv.OnWarning(func(err error) { warned = append(warned, err) })
	s, mr, b := sharedBuffer(t, c)
	imported := importOf(t, mr)
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	forged := e
	for _, size := range []uint64{4097, 1 << 40, 1<<64 - 1} {
		forged.Size = size
		frees := faults.Calls("CuMemFree")
		_, err = imported.Import(forged, s)
		require.ErrorContains(t, err, "and the driver that it has 4096")
		require.Equal(t, frees+1, faults.Calls("CuMemFree"), "it is not left imported")
	}
	faults.Fail("CuMemGetAddressRange", 1, driver.CUDA_ERROR_UNKNOWN)
	faults.Fail("CuMemFree", 1, driver.CUDA_ERROR_INVALID_VALUE)
	_, err = imported.Import(e, s)
	require.ErrorIs(t, err, ErrorUnknown)
	require.ErrorContains(t, err, "4096 bytes that another process shares")
	require.Len(t, warned, 1)
	require.ErrorContains(t, warned[0], "cuMemFree")
	require.Empty(t, c.drv.imports.memory)
	good, err := imported.Import(e, s)
	require.NoError(t, err)
	require.NoError(t, good.Close())
	require.NoError(t, b.Close())
	require.Zero(t, c.Drain(), "no lease is left")
	for _, x := range []io.Closer{imported, mr, s} {
		require.NoError(t, x.Close())
	}
}

func TestThreadsImportPools(t *testing.T) {
	c := openSimulated(t, Options{})
	s, mr, b := sharedBuffer(t, c)
	before := c.drv.Live()
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	var threads sync.WaitGroup
	for i := range 8 {
		threads.Go(func() {
			for range 30 {
				p := importOf(t, mr)
				if i%2 == 0 {
					_ = p.Close()
					p = withoutLeases(t, mr)
				}
				buffer, err := p.Import(e, s)
				if !assertNil(t, err) {
					return
				}
				_ = p.Close()
				assertNil(t, buffer.Fill(1, 1, s))
				assertNil(t, buffer.Close())
			}
		})
	}
	threads.Wait()
	require.Zero(t, c.Drain())
	require.Equal(t, before, c.drv.Live())
	require.Empty(t, c.drv.imports.memory)
	require.Empty(t, c.drv.imports.pools)
	for _, x := range []io.Closer{b, mr, s} {
		require.NoError(t, x.Close())
	}
}

// assertNil is for threads that are not the test's, which may not end it.
func assertNil(t *testing.T, err error) bool {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// pinnedBuffer is in a pool of host memory for sharing.
func pinnedBuffer(t *testing.T, c *Context) (*Stream, *DeviceMemoryResource, *Buffer) {
	t.Helper()
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	mr, err := NewPinnedPool(c.dev, PoolOptions{Shareable: true}, nil)
	require.NoError(t, err)
	b, err := mr.Allocate(4096, s)
	require.NoError(t, err)
	require.NoError(t, s.Synchronize())
	return s, mr, b
}

func TestPinnedMemoryIsShared(t *testing.T) {
	c := openSimulated(t, Options{Sim: "devices=2"})
	before := c.drv.Live()
	s, mr, b := pinnedBuffer(t, c)
	imported := importOf(t, mr)
	require.Equal(t, PinnedMemory, imported.Kind())
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	first, err := imported.Import(e, s)
	require.NoError(t, err)
	require.Equal(t, PinnedMemory, first.Kind())
	require.NotEqual(t, b.Ptr(), first.Ptr())
	require.NoError(t, b.Fill(7, 1, s))
	got := make([]byte, 4096)
	require.NoError(t, first.CopyToHost(got, s))
	require.Equal(t, byte(7), got[4095])

	other, err := c.drv.Device(1)
	require.NoError(t, err)
	elsewhere, err := other.Context()
	require.NoError(t, err)
	pool, leases, err := mr.Export()
	require.NoError(t, err)
	for _, l := range []int{leases, -1} {
		there, err := ImportPool(other, PinnedMemory, pool, l)
		require.NoError(t, err)
		_, err = there.Import(e, elsewhere.legacy)
		require.ErrorContains(t, err, "is imported on device 0 already")
		require.NoError(t, there.Close())
	}
	_, err = ImportPool(c.dev, DeviceMemory, pool, leases)
	require.ErrorContains(t, err, "is that of a pool of pinned memory, and imported as one of device memory")
	wrong, err := ImportPool(c.dev, DeviceMemory, pool, -1)
	require.NoError(t, err)
	require.NoError(t, syscall.Close(pool))
	require.NoError(t, syscall.Close(leases))

	require.NoError(t, b.Close())
	require.Equal(t, 1, c.Drain(), "another process has it")
	require.NoError(t, first.Close())
	require.Zero(t, c.Drain())
	b, err = mr.Allocate(4096, s)
	require.NoError(t, err)
	e, err = mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	_, err = wrong.Import(e, s)
	require.ErrorContains(t, err, "names memory of another kind: the pool was imported as one of device memory")
	for _, x := range []io.Closer{wrong, imported, b, mr, s} {
		require.NoError(t, x.Close())
	}
	require.Equal(t, before, c.drv.Live())
}

func TestDeviceMemoryIsNotImportedAsPinned(t *testing.T) {
	c := openSimulated(t, Options{})
	s, mr, b := sharedBuffer(t, c)
	pool, leases, err := mr.Export()
	require.NoError(t, err)
	_, err = ImportPool(c.dev, PinnedMemory, pool, leases)
	require.ErrorContains(t, err, "is that of a pool of device memory")
	imported, err := ImportPool(c.dev, PinnedMemory, pool, -1)
	require.NoError(t, err)
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	_, err = imported.Import(e, s)
	require.ErrorContains(t, err, "names memory of another kind")
	_, err = ImportPool(c.dev, DeviceMemory, leases, pool)
	require.ErrorContains(t, err, "not that of a pool's leases")
	_, err = ImportPool(c.dev, DeviceMemory, leases, leases)
	require.ErrorIs(t, err, ErrorInvalidValue, "leases are no pool")
	require.NoError(t, syscall.Close(pool))
	_, err = syscall.Pwrite(leases, []byte{77}, 24)
	require.NoError(t, err)
	_, err = ImportPool(c.dev, DeviceMemory, leases, leases)
	require.ErrorContains(t, err, "not that of a pool's leases")
	require.NoError(t, syscall.Close(leases))
	for _, x := range []io.Closer{imported, b, mr, s} {
		require.NoError(t, x.Close())
	}
}

// A reset takes what was imported; what is imported after it has nothing to do with
// that.
func TestImportAfterReset(t *testing.T) {
	c := openSimulated(t, Options{})
	s, mr, b := sharedBuffer(t, c)
	imported := importOf(t, mr)
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	old, err := imported.Import(e, s)
	require.NoError(t, err)
	c.lessors.remove(mr.lessor) // as if another process had exported it
	require.NoError(t, c.dev.Reset())
	_, err = imported.Import(e, s)
	require.ErrorIs(t, err, ErrLost)
	c, err = c.dev.Context()
	require.NoError(t, err)
	s2, mr2, b2 := sharedBuffer(t, c)
	imported2 := importOf(t, mr2)
	e2, err := mr2.ExportPointer(b2.Allocation())
	require.NoError(t, err)
	fresh, err := imported2.Import(e2, s2)
	require.NoError(t, err)
	for _, x := range []io.Closer{old, imported, b, mr, s} {
		require.NoError(t, x.Close())
	}
	require.Len(t, c.drv.imports.memory, 1)
	require.NoError(t, fresh.Fill(1, 1, s2))
	for _, x := range []io.Closer{fresh, imported2, b2, mr2, s2} {
		require.NoError(t, x.Close())
	}
	require.Zero(t, c.Drain())
}
