// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package dl

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpen(t *testing.T) {
	l, why := Open("libc.so.6")
	require.True(t, l.IsOpen(), why)
	at := l.Symbol("malloc")
	require.NotZero(t, at)
	require.Contains(t, filepath.Base(FileOf(at)), "libc")
	require.Zero(t, l.Symbol("cudago_no_such_symbol"))
	require.Empty(t, FileOf(1))
}

func TestOpenSaysWhyNot(t *testing.T) {
	l, why := Open("/nowhere/libnothing.so")
	require.False(t, l.IsOpen())
	require.Contains(t, why, "/nowhere/libnothing.so")
}
