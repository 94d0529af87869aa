// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// clusterStub answers for clusters with what it was asked.
type clusterStub struct{ *stub }

func cluster(config *driver.CUlaunchConfig) int32 {
	if config.NumAttrs == 0 {
		return 0
	}
	return int32((*driver.CUlaunchAttribute)(config.Attrs).Value[0])
}

func (s clusterStub) CuOccupancyMaxPotentialClusterSize(_ driver.CUfunction, config *driver.CUlaunchConfig) (int32, driver.CUresult) {
	return 100 + cluster(config), s.call("cuOccupancyMaxPotentialClusterSize")
}

func (s clusterStub) CuOccupancyMaxActiveClusters(_ driver.CUfunction, config *driver.CUlaunchConfig) (int32, driver.CUresult) {
	return 100*int32(unsafe.Sizeof(*config)/56) + cluster(config), s.call("cuOccupancyMaxActiveClusters")
}

func TestClusters(t *testing.T) {
	stub, c := openStub(t)
	code, err := ObjectCodeFrom("cubin", []byte("any"))
	require.NoError(t, err)
	k, err := code.Kernel(c.dev, "one")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, code.Close()); require.NoError(t, k.Close()) })
	c.drv.api = clusterStub{stub}

	cfg := LaunchConfig{Grid: [3]uint32{4}, Block: [3]uint32{32}, Cluster: [3]uint32{2}}
	for _, ask := range []func(LaunchConfig) (int, error){k.MaxClusterSize, k.MaxActiveClusters} {
		_, err = ask(cfg)
		require.ErrorIs(t, err, ErrorNotSupported)
		require.ErrorContains(t, err, "clusters need compute capability 9.0, device 0 has 7.5")
	}
	require.Zero(t, stub.count("cuOccupancyMaxPotentialClusterSize"))

	stub.attrs[driver.CUdevice_attribute(ClusterLaunch)] = 1
	c.dev.limits.Store(nil)
	n, err := k.MaxClusterSize(cfg)
	require.NoError(t, err)
	require.Equal(t, 100, n, "the cluster asked for does not count")
	n, err = k.MaxActiveClusters(cfg)
	require.NoError(t, err)
	require.Equal(t, 102, n)

	cfg.Grid[0] = 3
	_, err = k.MaxActiveClusters(cfg)
	require.EqualError(t, err, "grid must be a multiple of the cluster in x, got 3 blocks and clusters of 2")
	_, err = k.MaxClusterSize(cfg)
	require.NoError(t, err)
	cfg.Cluster = [3]uint32{}
	_, err = k.MaxActiveClusters(cfg)
	require.EqualError(t, err, "config must have a cluster, whose blocks run together")

	stub.on = func(call string) driver.CUresult {
		if call == "cuOccupancyMaxPotentialClusterSize" {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
		return driver.CUDA_SUCCESS
	}
	_, err = k.MaxClusterSize(cfg)
	require.ErrorIs(t, err, ErrorInvalidValue)
	require.ErrorContains(t, err, "cuOccupancyMaxPotentialClusterSize")
}
