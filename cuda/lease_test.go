// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// As if the exporter had been killed between the lock and its release, while others
// still have what it exported.
func TestLocksOfAnExporterThatDiesGo(t *testing.T) {
	l, err := newLessor(DeviceMemory)
	require.NoError(t, err)
	slot, err := l.slot(0x1000)
	require.NoError(t, err)
	fd, err := l.export()
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Close(fd)) }()
	e, err := newLessee(fd)
	require.NoError(t, err)
	defer e.close()
	require.NoError(t, lockWord(l.file, syscall.F_WRLCK, slot))
	require.ErrorIs(t, e.take(slot), errBusy)
	l.close()
	require.NoError(t, e.take(slot))
	e.giveBack(slot)
}

// Nobody else waits for an import that waits for another process.
func TestImportWaitsForAnExporterWithNothingHeld(t *testing.T) {
	c := openSimulated(t, Options{})
	s, mr, b := sharedBuffer(t, c)
	e, err := mr.ExportPointer(b.Allocation())
	require.NoError(t, err)
	other, err := mr.Allocate(4096, s)
	require.NoError(t, err)
	also, err := mr.ExportPointer(other.Allocation())
	require.NoError(t, err)
	in := importOf(t, mr)
	require.NoError(t, lockWord(mr.lessor.file, syscall.F_WRLCK, e.Slot))
	var imported *Buffer
	come := make(chan error, 1)
	go func() {
		var err error
		imported, err = in.Import(e, s)
		come <- err
	}()
	for range 5 {
		time.Sleep(2 * time.Millisecond)
		require.NoError(t, c.Synchronize())
	}
	meanwhile, err := in.Import(also, s)
	require.NoError(t, err)
	require.Empty(t, come)
	require.NoError(t, lockWord(mr.lessor.file, syscall.F_UNLCK, e.Slot))
	require.NoError(t, <-come)
	for _, x := range []io.Closer{meanwhile, imported, in, other, b, mr, s} {
		require.NoError(t, x.Close())
	}
	require.Eventually(t, func() bool { return c.Drain() == 0 }, 10*time.Second, time.Millisecond)
}
