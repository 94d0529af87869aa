// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func TestStreamDevice(t *testing.T) {
	here, there, s := twoDevices(t)
	other := otherStream(t, there)
	for want, stream := range map[*Device]*Stream{here: s, there: other} {
		got, err := here.drv.StreamDevice(stream.Handle())
		require.NoError(t, err)
		require.Same(t, want, got)
	}
	_, err := here.drv.StreamDevice(12345)
	require.ErrorIs(t, err, ErrorInvalidHandle)
}

func TestStreamDeviceOfUnknownContext(t *testing.T) {
	here, there, _ := twoDevices(t)
	h, r := here.drv.api.CuDevicePrimaryCtxRetain(there.h)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	before, _ := here.drv.api.CuCtxGetCurrent()
	got, err := here.drv.contextDevice(h)
	require.NoError(t, err)
	require.Same(t, there, got)
	after, _ := here.drv.api.CuCtxGetCurrent()
	require.Equal(t, before, after)
	require.Equal(t, driver.CUDA_SUCCESS, here.drv.api.CuDevicePrimaryCtxRelease(there.h))
}
