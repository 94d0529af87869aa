// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// sharesMemory is in the environment of a process in which [Run] shares memory of
// the kind that it names, for another process to import. Its descriptor 3 is the
// socket between them.
const sharesMemory = "DRIVERTEST_SHARES"

// sharedWords is how many 32-bit numbers a sharer's memory has, each of them 7.
const sharedWords = 2048

// theirs is memory of another process.
type theirs struct {
	fd   int32 // of its pool
	data driver.CUmemPoolPtrExportData
}

// sharer starts this test's program once more, which shares device memory until the
// test ends.
func (s *suite) sharer() theirs {
	s.Helper()
	return s.sharerOf("device")
}

func (s *suite) sharerOf(kind string) theirs {
	s.Helper()
	s.needPoolHandles()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(s.T, err)
	there := os.NewFile(uintptr(ends[1]), "socket")
	here := os.NewFile(uintptr(ends[0]), "socket")
	var parts []string
	for _, part := range strings.Split(s.options.test, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	self, err := os.Executable()
	require.NoError(s.T, err)
	child := exec.Command(self, "-test.run="+strings.Join(parts, "/"), "-test.count=1")
	child.Env = append(os.Environ(), sharesMemory+"="+kind)
	child.ExtraFiles = []*os.File{there}
	var out strings.Builder
	child.Stdout, child.Stderr = &out, &out
	require.NoError(s.T, child.Start())
	require.NoError(s.T, there.Close())
	s.cleanup(func() {
		require.NoError(s.T, here.Close()) // tells it to end
		require.NoError(s.T, child.Wait(), out.String())
	})
	m := theirs{}
	rights := make([]byte, syscall.CmsgSpace(4))
	n, nrights, _, _, err := syscall.Recvmsg(int(here.Fd()), m.data.Reserved[:], rights, syscall.MSG_WAITALL|syscall.MSG_CMSG_CLOEXEC)
	require.NoError(s.T, err)
	require.Len(s.T, m.data.Reserved, n, "the process that shares has ended")
	messages, err := syscall.ParseSocketControlMessage(rights[:nrights])
	require.NoError(s.T, err)
	require.Len(s.T, messages, 1)
	fds, err := syscall.ParseUnixRights(&messages[0])
	require.NoError(s.T, err)
	m.fd = int32(fds[0])
	s.cleanup(func() { _ = syscall.Close(fds[0]) })
	return m
}

// share is what the other process does: it sends a pool's descriptor with the data
// about an allocation, and frees that when the socket is closed.
func (s *suite) share() {
	const socket = 3
	pool, st := s.sharedPool(), s.stream()
	if os.Getenv(sharesMemory) == "host" {
		pool = s.hostNodePool(posix)
		s.grant(pool)
	}
	p, r := s.CuMemAllocFromPoolAsync(4*sharedWords, pool, st)
	s.ok(r)
	s.ok(s.CuMemsetD32Async(p, 7, sharedWords, st))
	s.ok(s.CuStreamSynchronize(st))
	fd := s.descriptor(pool) // before the pointer: see sharedPoolUse
	data, r := s.CuMemPoolExportPointer(p)
	s.ok(r)
	require.NoError(s.T, syscall.Sendmsg(socket, data.Reserved[:], syscall.UnixRights(int(fd)), nil, 0))
	end := os.NewFile(socket, "socket")
	_, err := io.Copy(io.Discard, end)
	require.NoError(s.T, err)
	s.ok(s.CuMemFreeAsync(p, st))
	s.ok(s.CuStreamSynchronize(st))
}

// pool imports the other process's pool.
func (m theirs) pool(s *suite) driver.CUmemoryPool {
	s.Helper()
	p, r := s.CuMemPoolImportFromShareableHandle(m.fd, posix, 0)
	s.ok(r)
	s.cleanup(func() { s.CuMemPoolDestroy(p) })
	return p
}

var importedMemories = map[string]func(*suite){
	"imported memory is the other process's":        importedUse,
	"imported memory has a range":                   importedRange,
	"imported again, memory has the same address":   importedTwice,
	"imported by two pools, memory has one address": importedByTwo,
	"one free ends all imports":                     importedFree,
	"one free in a stream ends all imports":         importedFreeAsync,
	"memory is imported again after it was freed":   importedAfterFree,
	"imported memory keeps its pool":                importedPoolDestroyed,
}

func (s *suite) importPointer(m theirs, pool driver.CUmemoryPool) driver.CUdeviceptr {
	s.Helper()
	p, r := s.CuMemPoolImportPointer(pool, &m.data)
	s.ok(r)
	return p
}

func importedUse(s *suite) {
	m := s.sharer()
	p := s.importPointer(m, m.pool(s))
	require.Equal(s.T, []uint32{7, 7}, s.read(p+4*sharedWords-8, 2))
	s.ok(s.CuMemFree(p))
}

func importedRange(s *suite) {
	m := s.sharer()
	p := s.importPointer(m, m.pool(s))
	base, size, r := s.CuMemGetAddressRange(p + 100)
	s.ok(r)
	require.Equal(s.T, p, base)
	require.GreaterOrEqual(s.T, size, uint64(4*sharedWords))
	s.ok(s.CuMemFree(p))
}

func importedTwice(s *suite) {
	m := s.sharer()
	pool := m.pool(s)
	p := s.importPointer(m, pool)
	require.Equal(s.T, p, s.importPointer(m, pool))
	s.ok(s.CuMemFree(p))
}

func importedByTwo(s *suite) {
	m := s.sharer()
	p := s.importPointer(m, m.pool(s))
	require.Equal(s.T, p, s.importPointer(m, m.pool(s)))
	s.ok(s.CuMemFree(p))
}

func importedFree(s *suite) {
	m := s.sharer()
	pool := m.pool(s)
	p := s.importPointer(m, pool)
	s.importPointer(m, pool)
	s.ok(s.CuMemFree(p))
	_, _, r := s.CuMemGetAddressRange(p)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}

func importedFreeAsync(s *suite) {
	m, st := s.sharer(), s.stream()
	p := s.importPointer(m, m.pool(s))
	s.importPointer(m, m.pool(s))
	s.ok(s.CuMemFreeAsync(p, st))
	s.ok(s.CuStreamSynchronize(st))
	_, _, r := s.CuMemGetAddressRange(p)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}

func importedAfterFree(s *suite) {
	m := s.sharer()
	pool := m.pool(s)
	s.ok(s.CuMemFree(s.importPointer(m, pool)))
	p := s.importPointer(m, pool)
	s.same(7, p)
	s.ok(s.CuMemFree(p))
}

func importedPoolDestroyed(s *suite) {
	m := s.sharer()
	p := s.importPointer(m, m.pool(s))
	again, r := s.CuMemPoolImportFromShareableHandle(m.fd, posix, 0)
	s.ok(r)
	s.importPointer(m, again)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuMemPoolDestroy(again))
	s.same(7, p)
	s.ok(s.CuMemFree(p))
	s.ok(s.CuMemPoolDestroy(again))
}
