// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"io"
	"math"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/fault"
)

// importOf exports a pool and imports it, as another process would: the locks
// of both belong to different open files.
func importOf(t *testing.T, mr *DeviceMemoryResource) *ImportedMemoryResource {
	t.Helper()
	pool, leases, err := mr.Export()
	require.NoError(t, err)
	imported, err := ImportPool(mr.Device(), mr.Kind(), pool, leases)
	require.NoError(t, err)
	require.NoError(t, syscall.Close(pool))
	require.NoError(t, syscall.Close(leases))
	return imported
}

func sharedBuffer(t *testing.T, c *Context) (*Stream, *DeviceMemoryResource, *Buffer) {
	t.Helper()
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{Shareable: true})
	require.NoError(t, err)
	b, err := mr.Allocate(4096, s)
	require.NoError(t, err)
	return s, mr, b
}

func TestExporterFreesAfterImporter(t *testing.T) {
	c := openSimulated(t, Options{})
	before := c.drv.Live()
	s, mr, b := sharedBuffer(t, c)
	imported := importOf(t, mr)
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	again, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	require.Equal(t, e, again)
	first, err := imported.Import(e, s)
	require.NoError(t, err)
	second, err := imported.Import(e, s)
	require.NoError(t, err)
	require.Equal(t, first.Ptr(), second.Ptr(), "it is imported once")
	wrong := e
	wrong.Size++
	_, err = imported.Import(wrong, s)
	require.ErrorContains(t, err, "has 4097 bytes, and an earlier one said 4096")
	require.NoError(t, b.Fill(7, 1, s))
	got := make([]byte, 4096)
	require.NoError(t, second.CopyToHost(got, s))
	require.Equal(t, byte(7), got[4095])

	require.NoError(t, b.Close())
	require.Equal(t, 3, c.drv.Live()["Allocation"])
	require.NoError(t, imported.Close())
	require.NoError(t, first.Close())
	require.Equal(t, 1, c.Drain(), "the second import holds it")
	require.NoError(t, second.Close())
	require.Zero(t, c.Drain())
	require.NoError(t, mr.Close())
	require.NoError(t, s.Close())
	require.Equal(t, before, c.drv.Live())
	_, _, err = mr.Export()
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, mr.lessor.file.Close(), os.ErrClosed)
}

// The driver names no memory of a pool before it has made a descriptor of it.
func TestExportOfMemoryBeforeItsPool(t *testing.T) {
	c := openSimulated(t, Options{})
	faults := fault.New(c.drv.api)
	c.drv.api = faults
	s, mr, b := sharedBuffer(t, c)
	const call = "CuMemPoolExportToShareableHandle"
	faults.Fail(call, 1, driver.CUDA_ERROR_OUT_OF_MEMORY)
	_, err := mr.ExportPointer(b.Allocation())
	require.ErrorIs(t, err, ErrorOutOfMemory)
	for range 2 {
		_, err = mr.ExportPointer(b.Allocation())
		require.NoError(t, err)
	}
	require.Equal(t, 2, faults.Calls(call), "once, and the one that failed")
	_, err = mr.ExportPointer(1<<40, 64)
	require.ErrorIs(t, err, ErrorInvalidValue)
	require.NoError(t, b.Close())
	require.NoError(t, mr.Close())
	require.NoError(t, s.Close())
}

func TestResetWaitsForNoImporter(t *testing.T) {
	c := openSimulated(t, Options{})
	s, mr, b := sharedBuffer(t, c)
	imported := importOf(t, mr)
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	theirs, err := imported.Import(e, s)
	require.NoError(t, err)
	lessee := imported.lessee

	err = c.dev.Reset()
	require.ErrorContains(t, err, "other processes have imported 1 allocation(s) of its memory")
	require.False(t, c.IsLost())
	require.NoError(t, theirs.Fill(7, 1, s))
	require.NoError(t, theirs.Close())
	require.NoError(t, s.Synchronize())

	faults := fault.New(c.drv.api)
	c.drv.api = faults
	faults.Fail("CuDevicePrimaryCtxRelease", 1, driver.CUDA_ERROR_NOT_SUPPORTED)
	require.ErrorIs(t, c.dev.Reset(), ErrorNotSupported)
	require.NoError(t, lessee.take(e.Slot), "the memory is still there")
	lessee.giveBack(e.Slot)
	require.NoError(t, c.dev.Reset())
	require.ErrorIs(t, lessee.take(e.Slot), errFreed)
	for _, o := range []io.Closer{b, imported, mr, s} {
		require.NoError(t, o.Close())
	}
	require.Empty(t, c.lessors.all)
}

func TestImportOfFreedMemory(t *testing.T) {
	c := openSimulated(t, Options{})
	s, mr, b := sharedBuffer(t, c)
	imported := importOf(t, mr)
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	require.NoError(t, b.Close())
	_, err = imported.Import(e, s)
	require.ErrorContains(t, err, "the process that shared the memory has freed it")
	other := e
	other.Pool[3]++
	_, err = imported.Import(other, s)
	require.ErrorContains(t, err, "in another pool")
	for _, e.Slot = range []int64{1000, -1, 1<<60 - 3, 1 << 61, math.MaxInt64} {
		_, err = imported.Import(e, s)
		require.EqualError(t, err, fmt.Sprintf("descriptor has slot %d: the pool has given no such slot", e.Slot))
	}
	for _, x := range []io.Closer{imported, mr, s} {
		require.NoError(t, x.Close())
	}
	_, err = imported.Import(e, s)
	require.ErrorIs(t, err, ErrClosed)
}

func TestWhatCannotBeShared(t *testing.T) {
	c := openSimulated(t, Options{})
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
	require.NoError(t, err)
	_, _, err = mr.Export()
	require.ErrorContains(t, err, "was not created for sharing")
	_, err = mr.ExportPointer(1, 1)
	require.ErrorContains(t, err, "was not created for sharing")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	_, err = ImportPool(c.dev, DeviceMemory, int(r.Fd()), -1)
	require.ErrorIs(t, err, ErrorInvalidValue)
	_, err = ImportPool(c.dev, DeviceMemory, int(r.Fd()), 1<<20)
	require.ErrorContains(t, err, "cannot be imported")
	for _, x := range []io.Closer{r, w, mr, s} {
		require.NoError(t, x.Close())
	}
}

func TestImportedPoolAllocatesNothing(t *testing.T) {
	c := openSimulated(t, Options{})
	s, mr, b := sharedBuffer(t, c)
	imported := importOf(t, mr)
	_, err := imported.Allocate(16, s)
	require.ErrorContains(t, err, "allocates nothing")
	_, err = imported.Import(PointerExport{}, nil)
	require.ErrorContains(t, err, "stream")
	for _, x := range []io.Closer{imported, b, mr, s} {
		require.NoError(t, x.Close())
	}
}

func TestSharedEvent(t *testing.T) {
	c := openSimulated(t, Options{})
	before := c.drv.Live()
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	_, err = c.NewEvent(EventOptions{Shareable: true, Timing: true})
	require.ErrorContains(t, err, "cannot have timing")
	plain, err := c.NewEvent(EventOptions{})
	require.NoError(t, err)
	_, err = plain.Export()
	require.ErrorContains(t, err, "was not created for sharing")
	e, err := c.NewEvent(EventOptions{Shareable: true})
	require.NoError(t, err)
	handle, err := e.Export()
	require.NoError(t, err)
	f, err := c.OpenEvent(handle)
	require.NoError(t, err)
	_, err = f.Export()
	require.ErrorContains(t, err, "only the process that created it")
	require.NoError(t, s.Record(e))
	require.NoError(t, f.Synchronize())
	require.NoError(t, e.Close())
	require.NoError(t, f.Synchronize(), "an exported event outlives its Close")
	require.NoError(t, s.Wait(f))
	_, err = c.OpenEvent([SharedBytes]byte{})
	require.ErrorIs(t, err, ErrorInvalidHandle)
	for _, x := range []io.Closer{f, plain, s} {
		require.NoError(t, x.Close())
	}
	require.Equal(t, before, c.drv.Live())
}

// sharedOperations are those of faults_test.go that share memory and events.
func sharedOperations(t *testing.T, c *Context) map[string]func() (io.Closer, error) {
	s, mr, b := sharedBuffer(t, c)
	imported := importOf(t, mr)
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	on, hostPool, hostBuffer := pinnedBuffer(t, c)
	importedHost := importOf(t, hostPool)
	host, err := hostPool.ExportPointer(hostBuffer.Allocation())
	require.NoError(t, err)
	event, err := c.NewEvent(EventOptions{Shareable: true})
	require.NoError(t, err)
	handle, err := event.Export()
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, x := range []io.Closer{imported, b, mr, importedHost, hostBuffer, hostPool, on, event, s} {
			require.NoError(t, x.Close())
		}
	})
	return map[string]func() (io.Closer, error){
		"new shared pool":  func() (io.Closer, error) { return NewDeviceMemoryResource(c.dev, PoolOptions{Shareable: true}) },
		"new shared event": func() (io.Closer, error) { return c.NewEvent(EventOptions{Shareable: true}) },
		"export pool": func() (io.Closer, error) {
			pool, leases, err := mr.Export()
			if err == nil {
				_, _ = syscall.Close(pool), syscall.Close(leases)
			}
			return nil, err
		},
		"import pool":        func() (io.Closer, error) { return importAnew(mr) },
		"import pinned pool": func() (io.Closer, error) { return importAnew(hostPool) },
		"new shared pinned pool": func() (io.Closer, error) {
			return NewPinnedPool(c.dev, PoolOptions{Shareable: true}, nil)
		},
		"import pinned pointer": func() (io.Closer, error) { return importedHost.Import(host, s) },
		"export pointer":        func() (io.Closer, error) { _, err := mr.ExportPointer(b.Allocation()); return nil, err },
		"import pointer":        func() (io.Closer, error) { return imported.Import(e, s) },
		"export event":          func() (io.Closer, error) { _, err := event.Export(); return nil, err },
		"open event":            func() (io.Closer, error) { return c.OpenEvent(handle) },
	}
}

// importAnew imports a pool as one of another library, which is always new.
func importAnew(mr *DeviceMemoryResource) (io.Closer, error) {
	pool, leases, err := mr.Export()
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = syscall.Close(pool), syscall.Close(leases) }()
	imported, err := ImportPool(mr.Device(), mr.Kind(), pool, -1)
	if err != nil {
		return nil, err
	}
	return imported, nil
}
