// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name string
		cfg  LaunchConfig
		want string
	}{
		{"one number each", LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1024}}, ""},
		{"all numbers", LaunchConfig{Grid: [3]uint32{2, 3, 4}, Block: [3]uint32{8, 8, 16}}, ""},
		{"largest grid", LaunchConfig{Grid: [3]uint32{1<<31 - 1, 65535, 65535}, Block: [3]uint32{1}}, ""},
		{"block too large", LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{2048}}, "block must be 1 to 1024 threads, got 2048"},
		{"product too large", LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{32, 32, 2}}, "block must be 1 to 1024 threads, got 2048 (32 × 32 × 2)"},
		{"product beyond 32 bits", LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1 << 16, 1 << 16}}, "block must be 1 to 1024 threads, got 4294967296 (65536 × 65536 × 1)"},
		{"no block", LaunchConfig{Grid: [3]uint32{1}}, "block must be 1 to 1024 threads, got 0"},
		{"no grid", LaunchConfig{Block: [3]uint32{1}}, "grid must be at least 1 block, got 0"},
		{"block too deep", LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1, 1, 65}}, "block must be 1 to 64 threads in z, got 65"},
		{"grid too high", LaunchConfig{Grid: [3]uint32{1, 65536}, Block: [3]uint32{1}}, "grid must be 1 to 65535 blocks in y, got 65536"},
		{"shared memory", LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1}, SharedMemory: 65537}, "shared memory must be at most 65536 bytes, got 65537"},
		{
			"cluster",
			LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1}, Cluster: [3]uint32{1}},
			"cuLaunchKernelEx: CUDA_ERROR_NOT_SUPPORTED: not supported by this driver or device (clusters need compute capability 9.0, device 0 has 7.5)",
		},
		{
			"programmatic",
			LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1}, Programmatic: true},
			"cuLaunchKernelEx: CUDA_ERROR_NOT_SUPPORTED: not supported by this driver or device (programmatic dependent launch needs compute capability 9.0, device 0 has 7.5)",
		},
	}
	_, c := openStub(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.Validate(c.dev)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tt.want)
		})
	}
}

func TestValidateCluster(t *testing.T) {
	stub, c := openStub(t)
	stub.attrs[driver.CUdevice_attribute(ClusterLaunch)] = 1
	cfg := LaunchConfig{Grid: [3]uint32{4, 3}, Block: [3]uint32{1}, Cluster: [3]uint32{2}}
	require.NoError(t, cfg.Validate(c.dev))
	cfg.Cluster = [3]uint32{2, 2}
	require.EqualError(t, cfg.Validate(c.dev), "grid must be a multiple of the cluster in y, got 3 blocks and clusters of 2")
	cfg.Cluster = [3]uint32{0, 2}
	require.EqualError(t, cfg.Validate(c.dev), "cluster must be at least 1 block in x, got 0")
}

func TestValidateAsksTheDriverOnce(t *testing.T) {
	stub, c := openStub(t)
	cfg := LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1}}
	require.NoError(t, cfg.Validate(c.dev))
	n := stub.count("cuDeviceGetAttribute")
	require.NoError(t, cfg.Validate(c.dev))
	require.Equal(t, n, stub.count("cuDeviceGetAttribute"))
}

func TestLaunchAttributes(t *testing.T) {
	priority := -3
	cfg := LaunchConfig{Cooperative: true, Cluster: [3]uint32{2}, Priority: &priority, Programmatic: true}
	var a [maxAttributes]driver.CUlaunchAttribute
	require.Equal(t, 4, cfg.attributes(&a))
	require.Equal(t, driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, a[0].ID)
	require.Equal(t, u32(1), a[0].Value[:4])
	require.Equal(t, driver.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, a[1].ID)
	require.Equal(t, append(append(u32(2), u32(1)...), u32(1)...), a[1].Value[:12])
	require.Equal(t, driver.CU_LAUNCH_ATTRIBUTE_PRIORITY, a[2].ID)
	require.Equal(t, u32(0xFFFFFFFD), a[2].Value[:4])
	require.Equal(t, driver.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, a[3].ID)
	require.Equal(t, u32(1), a[3].Value[:4])
	require.Zero(t, (&LaunchConfig{}).attributes(&a))
}

// A refused launch says which limit of the kernel's own it broke.
func TestLaunchErrorNamesTheKernelsLimits(t *testing.T) {
	stub, c := openStub(t)
	b, s := stubBuffer(t, c)
	defer b.Close()
	code, err := ObjectCodeFrom(PTX, []byte(saxpyPTX))
	require.NoError(t, err)
	k, err := code.Kernel(c.dev, "saxpy")
	require.NoError(t, err)
	stub.on = func(call string) driver.CUresult {
		if call == "cuLaunchKernelEx" {
			return driver.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
		}
		return driver.CUDA_SUCCESS
	}
	cfg := LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{512}, SharedMemory: 300}
	err = Launch(s, cfg, k, 2.0, b, b, 4)
	require.ErrorIs(t, err, ErrorLaunchOutOfResources)
	require.ErrorContains(t, err, `kernel "saxpy", grid [1 1 1], block [512 1 1], 300 bytes of shared memory`)
	require.ErrorContains(t, err, "this kernel can run at most 256 threads in a block")
	require.ErrorContains(t, err, "may use 256 bytes until its attribute max_dynamic_shared_size is raised")
}

func TestLaunchChecksBeforeTheDriver(t *testing.T) {
	stub, c := openStub(t)
	b, s := stubBuffer(t, c)
	code, err := ObjectCodeFrom(PTX, []byte(saxpyPTX))
	require.NoError(t, err)
	k, err := code.Kernel(c.dev, "saxpy")
	require.NoError(t, err)
	cfg := LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1}}
	require.NoError(t, Launch(s, cfg, k, 2.0, b, nil, 4))
	require.Error(t, Launch(s, cfg, k, 2.0, b, nil, 3.5))
	require.Error(t, Launch(s, LaunchConfig{}, k, 2.0, b, nil, 4))

	host := c.WrapBuffer(BufferInfo{Ptr: 0x10, Size: 4, Kind: HostMemory})
	require.ErrorContains(t, Launch(s, cfg, k, 2.0, host, nil, 4), "cannot be pageable host memory")
	stub.attrs[driver.CUdevice_attribute(PageableMemoryAccess)] = 1
	require.NoError(t, Launch(s, cfg, k, 2.0, host, nil, 4))

	other, err := c.drv.Device(1)
	require.NoError(t, err)
	onOther, err := code.Kernel(other, "saxpy")
	require.NoError(t, err)
	require.EqualError(t, Launch(s, cfg, onOther, 2.0, nil, nil, 4), "stream must be of device 1, as the kernel is, got one of device 0")

	require.NoError(t, b.Close())
	require.ErrorIs(t, Launch(s, cfg, k, 2.0, b, nil, 4), ErrClosed)
	require.NoError(t, k.Close())
	require.ErrorIs(t, Launch(s, cfg, k, 2.0, nil, nil, 4), ErrClosed)
	require.Equal(t, 2, stub.count("cuLaunchKernelEx"))
}
