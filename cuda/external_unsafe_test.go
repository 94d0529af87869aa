// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/memfd"
)

// externalFile makes a file in memory and maps it. The descriptor is the test's.
func externalFile(t *testing.T, size int) (fd int, mem []byte) {
	t.Helper()
	f, err := memfd.Create("test")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	require.NoError(t, f.Truncate(int64(size)))
	mem, err = syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(mem)) })
	return int(f.Fd()), mem
}

// externalSemaphore is one of the simulated driver's.
func externalSemaphore(t *testing.T, timeline bool) (fd int, value *atomic.Uint64) {
	t.Helper()
	fd, mem := externalFile(t, 4096)
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), 3)
	words[0], words[1] = 0x616d657367756463, 1
	if timeline {
		words[1] = 9
	}
	return fd, (*atomic.Uint64)(unsafe.Pointer(&words[2]))
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// The caller's descriptor stays his, whether the import succeeds or not, and the
// duplicate goes with what was imported.
func TestImportLeavesTheDescriptor(t *testing.T) {
	c := openSimulated(t, Options{})
	sem, _ := externalSemaphore(t, true)
	before, live := openDescriptors(t), c.drv.Live()
	for range 2 {
		e, err := c.ImportSemaphore(sem, true)
		require.NoError(t, err)
		require.NoError(t, e.Close())
	}
	_, err := c.ImportSemaphore(sem, false)
	require.ErrorIs(t, err, ErrorInvalidHandle)
	require.ErrorContains(t, err, "cudago.sim.create_semaphore")
	_, err = c.ImportMemory(sem, 4097, false)
	require.ErrorIs(t, err, ErrorInvalidValue)
	require.ErrorContains(t, err, "os.memfd_create")
	for _, fd := range []int{-1, 1 << 20, 1 << 40} {
		_, err = c.ImportSemaphore(fd, true)
		require.ErrorContains(t, err, "must be an open file descriptor")
	}
	_, err = c.ImportMemory(sem, 0, false)
	require.ErrorContains(t, err, "at least 1 byte")
	require.Equal(t, before, openDescriptors(t))
	require.Equal(t, live, c.drv.Live())
}

func TestSemaphoreIsDestroyedByItsLastUser(t *testing.T) {
	c := openSimulated(t, Options{})
	live := c.drv.Live()
	fd, value := externalSemaphore(t, true)
	e, err := c.ImportSemaphore(fd, true)
	require.NoError(t, err)
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, SemaphoreOp(SemaphoreParams{Semaphore: e, Value: 3}, s))
	require.NoError(t, s.Synchronize())
	require.EqualValues(t, 3, value.Load())
	done, err := e.Use()
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	require.Equal(t, 1, c.drv.Live()["ExternalSemaphore"])
	require.ErrorIs(t, SemaphoreOp(SemaphoreParams{Semaphore: e}, s), ErrClosed)
	done()
	require.NoError(t, s.Close())
	require.Equal(t, live, c.drv.Live())
}

// A mapping is freed before what it is of, whichever is closed first.
func TestExternalMemoryOutlivesItsMappings(t *testing.T) {
	stub, c := openStub(t)
	fd, _ := externalFile(t, 8192)
	live := c.drv.Live()
	m, err := c.ImportMemory(fd, 8192, true)
	require.NoError(t, err)
	b, err := m.Map(4096, 4096, nil)
	require.NoError(t, err)
	part, err := b.Slice(1, 2)
	require.NoError(t, err)
	stub.calls = nil
	require.NoError(t, m.Close())
	require.True(t, m.IsClosed())
	require.NoError(t, b.Close())
	require.NotContains(t, stub.calls, "cuDestroyExternalMemory")
	require.NoError(t, part.Close())
	var order []string
	for _, call := range stub.calls {
		if call == "cuMemFree" || call == "cuDestroyExternalMemory" {
			order = append(order, call)
		}
	}
	require.Equal(t, []string{"cuMemFree", "cuDestroyExternalMemory"}, order)
	require.Equal(t, live, c.drv.Live())
	_, err = m.Map(0, 1, nil)
	require.ErrorIs(t, err, ErrClosed)
}

func TestExternalMemoryHasBounds(t *testing.T) {
	c := openSimulated(t, Options{})
	fd, mem := externalFile(t, 8192)
	m, err := c.ImportMemory(fd, 8000, false)
	require.NoError(t, err)
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	for _, part := range [][2]uint64{{0, 8001}, {8000, 1}, {1, 1<<64 - 1}, {0, 0}} {
		_, err := m.Map(part[0], part[1], s)
		var bad *ArgumentError
		require.ErrorAs(t, err, &bad)
	}
	b, err := m.Map(4096, 3904, s)
	require.NoError(t, err)
	require.NoError(t, b.Fill(7, 1, s))
	require.NoError(t, b.Close())
	require.EqualValues(t, 7, mem[4096], "closing waits for the stream")
	require.Equal(t, []byte{7, 0}, mem[7999:8001])
	require.NoError(t, m.Close())
	require.NoError(t, s.Close())
}

// externalOperations are those of faults_test.go that use other APIs.
func externalOperations(t *testing.T, c *Context, g GraphHandle) map[string]func() (io.Closer, error) {
	fd, _ := externalSemaphore(t, true)
	e, err := c.ImportSemaphore(fd, true)
	require.NoError(t, err)
	m, err := c.ImportMemory(fd, 4096, false)
	require.NoError(t, err)
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	own, err := c.GraphCreate()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.GraphDestroy(own))
		for _, x := range []io.Closer{m, e, s} {
			require.NoError(t, x.Close())
		}
	})
	all := map[string]func() (io.Closer, error){
		"import semaphore": func() (io.Closer, error) { return orNil(c.ImportSemaphore(fd, true)) },
		"import memory":    func() (io.Closer, error) { return orNil(c.ImportMemory(fd, 4096, false)) },
		"map memory":       func() (io.Closer, error) { return orNil(m.Map(0, 4096, s)) },
	}
	for name, p := range map[string]SemaphoreParams{"signal": {Semaphore: e}, "wait": {Semaphore: e, IsWait: true}} {
		all[name+" semaphore"] = func() (io.Closer, error) { return nil, SemaphoreOp(p, s) }
		all["add "+name+" node"] = func() (io.Closer, error) {
			n, err := c.AddSemaphoreNode(g, nil, &p)
			return nodeCloser{c, n}, err
		}
		n, err := c.AddSemaphoreNode(own, nil, &p)
		require.NoError(t, err)
		all["set "+name+" node"] = func() (io.Closer, error) { return nil, c.SetSemaphoreNodeParams(n, &p) }
	}
	return all
}

// orNil returns no closer that holds a nil pointer.
func orNil[T io.Closer](made T, err error) (io.Closer, error) {
	if err != nil {
		return nil, err
	}
	return made, nil
}

// The updates of executables, whose nodes the other operations' graph lacks.
func TestFailedSemaphoreUpdateLeavesNothing(t *testing.T) {
	faults, c := openFaulty(t)
	fd, value := externalSemaphore(t, true)
	e, err := c.ImportSemaphore(fd, true)
	require.NoError(t, err)
	g, err := c.GraphCreate()
	require.NoError(t, err)
	nodes := map[string]NodeHandle{}
	for call, waits := range map[string]bool{"CuGraphExecExternalSemaphoresSignalNodeSetParams": false, "CuGraphExecExternalSemaphoresWaitNodeSetParams": true} {
		nodes[call], err = c.AddSemaphoreNode(g, nil, &SemaphoreParams{Semaphore: e, IsWait: waits})
		require.NoError(t, err)
	}
	x, err := c.Instantiate(g, 0)
	require.NoError(t, err)
	for call, n := range nodes {
		p := &SemaphoreParams{Semaphore: e, Value: 5, IsWait: call == "CuGraphExecExternalSemaphoresWaitNodeSetParams"}
		faults.Fail(call, 1, driver.CUDA_ERROR_UNKNOWN)
		require.ErrorIs(t, c.ExecSetSemaphoreParams(x, n, p), ErrorUnknown)
		require.NoError(t, c.ExecSetSemaphoreParams(x, n, p))
	}
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, c.ExecLaunch(x, s))
	require.NoError(t, s.Synchronize())
	require.EqualValues(t, 5, value.Load())
	require.NoError(t, c.ExecDestroy(x))
	require.NoError(t, c.GraphDestroy(g))
	require.NoError(t, e.Close())
	require.NoError(t, s.Close())
}
