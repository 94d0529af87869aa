// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memfd

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFileIsSharedByDescriptor(t *testing.T) {
	f, err := Create("cudago test")
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("shared"), 4096)
	require.NoError(t, err)
	fd, err := Duplicate(f)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Close(fd)) }()
	again, err := Open(os.Getpid(), fd)
	require.NoError(t, err)
	defer again.Close()
	text := make([]byte, 6)
	_, err = again.ReadAt(text, 4096)
	require.NoError(t, err)
	require.Equal(t, "shared", string(text))
}

func TestNothingIsThereToOpen(t *testing.T) {
	_, err := Open(os.Getpid(), 1<<20)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Create("a\x00b")
	require.Error(t, err)
}
