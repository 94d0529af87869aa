// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/drivertest"
	"github.com/cudago/cudago/cuda/internal/driver/nvidia/hostfn"
)

// The simulated driver runs the same suite: what holds there holds here.
func TestConformance(t *testing.T) {
	d := openGPU(t)
	dev, r := d.CuDeviceGet(0)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	// Each behaviour retains and releases the primary context; without one more
	// holder it would be made anew every time.
	_, r = d.CuDevicePrimaryCtxRetain(dev)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	t.Cleanup(func() { d.CuDevicePrimaryCtxRelease(dev) })
	drivertest.Run(t, openGPU, drivertest.Options{HostFn: hostfn.Count()})
}
