// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatTheSystemIsShortOfIsSaid(t *testing.T) {
	for errno, result := range map[syscall.Errno]Result{
		syscall.EMFILE: ErrorOperatingSystem,
		syscall.ENFILE: ErrorOperatingSystem,
		syscall.ENOMEM: ErrorOutOfMemory,
		syscall.ENOSPC: ErrorOutOfMemory,
		syscall.ENOSYS: ErrorNotSupported,
	} {
		err := systemError("cuMemPoolCreate", "sharing needs a file", os.NewSyscallError("memfd_create", errno))
		require.ErrorIs(t, err, result)
		require.ErrorContains(t, err, "sharing needs a file: memfd_create: "+errno.Error())
	}
}

// fewFiles leaves the process no descriptor.
func fewFiles(t *testing.T) {
	t.Helper()
	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	last, err := syscall.Dup(0)
	require.NoError(t, err)
	require.NoError(t, syscall.Close(last))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(last), Max: old.Max}))
	t.Cleanup(func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)) })
}

func TestNoDescriptorIsLeftForWhatIsShared(t *testing.T) {
	c := openSimulated(t, Options{})
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{Shareable: true})
	require.NoError(t, err)
	pool, leases, err := mr.Export()
	require.NoError(t, err)
	t.Run("none", func(t *testing.T) {
		fewFiles(t)
		_, _, err := mr.Export()
		require.ErrorIs(t, err, ErrorOperatingSystem)
		_, err = NewDeviceMemoryResource(c.dev, PoolOptions{Shareable: true})
		require.ErrorIs(t, err, ErrorOperatingSystem)
		require.ErrorContains(t, err, "too many open files")
		_, err = ImportPool(c.dev, DeviceMemory, pool, leases)
		require.ErrorIs(t, err, ErrorOperatingSystem)
		_, err = ImportPool(c.dev, DeviceMemory, pool, -1)
		require.ErrorIs(t, err, ErrorOperatingSystem)
		_, err = c.NewEvent(EventOptions{Shareable: true})
		require.ErrorIs(t, err, ErrorOperatingSystem)
	})
	require.NoError(t, syscall.Close(pool))
	require.NoError(t, syscall.Close(leases))
	require.NoError(t, mr.Close())
}
