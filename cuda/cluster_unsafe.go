// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"runtime"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// MaxClusterSize returns how many blocks a cluster of k can have at most, in
// launches like c, whose own cluster does not count. It calls
// cuOccupancyMaxPotentialClusterSize.
//
// Errors: as of [LaunchConfig.Validate]; [ErrorNotSupported] on a device that
// has no clusters.
func (k *Kernel) MaxClusterSize(c LaunchConfig) (int, error) {
	c.Cluster = [3]uint32{}
	return k.clusters("cuOccupancyMaxPotentialClusterSize", &c, func(api driver.API, config *driver.CUlaunchConfig) (int32, driver.CUresult) {
		return api.CuOccupancyMaxPotentialClusterSize(k.h, config)
	})
}

// MaxActiveClusters returns how many clusters of a launch like c can run on the
// device at once. It calls cuOccupancyMaxActiveClusters.
//
// Errors: as of [LaunchConfig.Validate]; an [*ArgumentError] if c has no cluster;
// [ErrorNotSupported] on a device that has none.
func (k *Kernel) MaxActiveClusters(c LaunchConfig) (int, error) {
	if !c.clusters() {
		return 0, badValue("config", "must have a cluster, whose blocks run together")
	}
	return k.clusters("cuOccupancyMaxActiveClusters", &c, func(api driver.API, config *driver.CUlaunchConfig) (int32, driver.CUresult) {
		return api.CuOccupancyMaxActiveClusters(k.h, config)
	})
}

// clusters asks about clusters of a launch that would be allowed.
func (k *Kernel) clusters(op string, c *LaunchConfig, ask func(driver.API, *driver.CUlaunchConfig) (int32, driver.CUresult)) (int, error) {
	dev := k.Device()
	l, err := dev.launchLimits()
	if err != nil {
		return 0, err
	}
	if !l.clusters {
		return 0, &Error{Op: op, Result: ErrorNotSupported, Detail: l.whyNoClusters(dev)}
	}
	if err := c.Validate(dev); err != nil {
		return 0, err
	}
	return callKernel(k, op, func(api driver.API) (int, driver.CUresult) {
		grid, block := c.dims()
		config := driver.CUlaunchConfig{
			GridDimX: grid[0], GridDimY: grid[1], GridDimZ: grid[2],
			BlockDimX: block[0], BlockDimY: block[1], BlockDimZ: block[2],
			SharedMemBytes: c.SharedMemory,
		}
		var attrs [maxAttributes]driver.CUlaunchAttribute
		if n := c.attributes(&attrs); n > 0 {
			var pin runtime.Pinner
			defer pin.Unpin()
			pin.Pin(&attrs)
			config.Attrs, config.NumAttrs = unsafe.Pointer(&attrs), uint32(n)
		}
		n, r := ask(api, &config)
		return int(n), r
	})
}
