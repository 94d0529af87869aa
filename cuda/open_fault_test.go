// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build cudagotest

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFailCall(t *testing.T) {
	d, err := Open(Options{Driver: "sim"})
	require.NoError(t, err)
	dev, err := d.Device(0)
	require.NoError(t, err)
	c, err := dev.Context()
	require.NoError(t, err)
	s := newTestStream(t, c, StreamOptions{})
	n := d.CallCount("cuStreamSynchronize")
	d.FailCall("cuStreamSynchronize", 2, ErrorUnknown)
	require.NoError(t, s.Synchronize())
	require.ErrorIs(t, s.Synchronize(), ErrorUnknown)
	require.NoError(t, s.Synchronize())
	require.Equal(t, n+3, d.CallCount("cuStreamSynchronize"))
	d.FailCall("", 100, ErrorUnknown)
	require.True(t, d.ClearFaults())
	require.False(t, d.ClearFaults())
	require.Zero(t, d.EntryPoint("cuGraphLaunch"))
}
