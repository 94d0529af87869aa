// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// openGPU opens this machine's driver, initialized. Without a GPU the test is
// skipped, or fails if CUDAGO_REQUIRE_GPU is 1.
func openGPU(t *testing.T) driver.API {
	t.Helper()
	absent := t.Skipf
	if os.Getenv("CUDAGO_REQUIRE_GPU") == "1" {
		absent = t.Fatalf
	}
	d, err := Open(Options{})
	if err != nil {
		absent("no GPU: %v", err)
	}
	if r := d.CuInit(0); r != driver.CUDA_SUCCESS {
		absent("no GPU: cuInit: %v", r)
	}
	if n, r := d.CuDeviceGetCount(); r != driver.CUDA_SUCCESS || n == 0 {
		absent("no GPU: cuDeviceGetCount: %d, %v", n, r)
	}
	return d
}

func TestGPUAnswers(t *testing.T) {
	d := openGPU(t)
	dev, r := d.CuDeviceGet(0)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	name, r := d.CuDeviceGetName(dev)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.NotEmpty(t, name)
	warp, r := d.CuDeviceGetAttribute(driver.CU_DEVICE_ATTRIBUTE_WARP_SIZE, dev)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.EqualValues(t, 32, warp)
	for _, e := range entries {
		require.NotZero(t, d.EntryPoint(e.name), "%s is in every supported driver", e.name)
	}
}
