// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"encoding/binary"
	"fmt"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// LaunchConfig is the shape of a launch. Of Grid, Block and Cluster, zeros
// after the first number count as 1.
type LaunchConfig struct {
	// Grid counts blocks (or, with Cluster, still blocks), Block threads.
	Grid, Block [3]uint32
	// Cluster counts the blocks of a cluster; all zero is no cluster.
	Cluster [3]uint32
	// SharedMemory is dynamic shared memory of a block, in bytes.
	SharedMemory uint32
	// Cooperative makes all blocks run at once, so that they can synchronize.
	Cooperative bool
	// Priority replaces the stream's, if not nil.
	Priority *int
	// Programmatic lets the kernel start before the kernel in front of it has
	// ended: see [Programmatic]. Of a kernel node it says which edges to make.
	Programmatic bool
}

// launchLimits are the facts of a device that a launch is checked against.
type launchLimits struct {
	threads                    uint64
	block, grid                [3]uint32
	shared                     uint32
	cooperative, clusters      bool
	computeMajor, computeMinor int
}

// launchLimits asks for the device's limits, once.
func (d *Device) launchLimits() (*launchLimits, error) {
	if l := d.limits.Load(); l != nil {
		return l, nil
	}
	var (
		l     launchLimits
		first error
	)
	get := func(a Attribute) uint32 {
		v, err := d.Attribute(a)
		if err != nil && first == nil {
			first = err
		}
		return uint32(v)
	}
	l.threads = uint64(get(MaxThreadsPerBlock))
	l.block = [3]uint32{get(MaxBlockDimX), get(MaxBlockDimY), get(MaxBlockDimZ)}
	l.grid = [3]uint32{get(MaxGridDimX), get(MaxGridDimY), get(MaxGridDimZ)}
	l.shared = max(get(MaxSharedMemoryPerBlockOptin), get(MaxSharedMemoryPerBlock))
	l.cooperative = get(CooperativeLaunch) != 0
	l.clusters = get(ClusterLaunch) != 0
	l.computeMajor, l.computeMinor = int(get(ComputeCapabilityMajor)), int(get(ComputeCapabilityMinor))
	if first != nil {
		return nil, first
	}
	d.limits.Store(&l)
	return &l, nil
}

// Dims returns grid and block with the numbers left out filled in.
func (c LaunchConfig) Dims() (grid, block [3]uint32) { return c.dims() }

func (c *LaunchConfig) dims() (grid, block [3]uint32) { return fillDims(c.Grid), fillDims(c.Block) }

func fillDims(d [3]uint32) [3]uint32 { return [3]uint32{d[0], max(d[1], 1), max(d[2], 1)} }

func (c *LaunchConfig) clusters() bool { return c.Cluster != [3]uint32{} }

// Validate checks c against what dev can do. It calls the driver the first time
// only.
//
// Errors: an [*ArgumentError] with the limit and what c has; [ErrorNotSupported]
// for a cluster, a cooperative or a programmatic launch on a device that has none.
func (c *LaunchConfig) Validate(dev *Device) error {
	l, err := dev.launchLimits()
	if err != nil {
		return err
	}
	grid, block := c.dims()
	threads := uint64(block[0]) * uint64(block[1]) * uint64(block[2])
	if block[0] == 0 || threads > l.threads {
		return badValue("block", "must be 1 to %d threads, got %d%s", l.threads, threads, product(block))
	}
	if grid[0] == 0 {
		return badValue("grid", "must be at least 1 block, got 0")
	}
	for i, axis := range "xyz" {
		if block[i] > l.block[i] {
			return badValue("block", "must be 1 to %d threads in %c, got %d", l.block[i], axis, block[i])
		}
		if grid[i] > l.grid[i] {
			return badValue("grid", "must be 1 to %d blocks in %c, got %d", l.grid[i], axis, grid[i])
		}
	}
	if c.SharedMemory > l.shared {
		return badValue("shared memory", "must be at most %d bytes, got %d", l.shared, c.SharedMemory)
	}
	if c.Cooperative && !l.cooperative {
		return &Error{Op: "cuLaunchKernelEx", Result: ErrorNotSupported, Detail: fmt.Sprintf("%v has no cooperative launch", dev)}
	}
	if c.Programmatic {
		if err := dev.CheckProgrammatic("cuLaunchKernelEx"); err != nil {
			return err
		}
	}
	return c.validateCluster(dev, l, grid)
}

func (c *LaunchConfig) validateCluster(dev *Device, l *launchLimits, grid [3]uint32) error {
	if !c.clusters() {
		return nil
	}
	if !l.clusters {
		return &Error{
			Op: "cuLaunchKernelEx", Result: ErrorNotSupported,
			Detail: l.whyNoClusters(dev),
		}
	}
	cluster := fillDims(c.Cluster)
	if cluster[0] == 0 {
		return badValue("cluster", "must be at least 1 block in x, got 0")
	}
	for i, axis := range "xyz" {
		if grid[i]%cluster[i] != 0 {
			return badValue("grid", "must be a multiple of the cluster in %c, got %d blocks and clusters of %d", axis, grid[i], cluster[i])
		}
	}
	return nil
}

func (l *launchLimits) whyNoClusters(dev *Device) string {
	if l.computeMajor >= 9 {
		return fmt.Sprintf("the driver of %v does not launch clusters", dev)
	}
	return fmt.Sprintf("clusters need compute capability 9.0, %v has %d.%d", dev, l.computeMajor, l.computeMinor)
}

// product explains a number of threads, where it is not that of one axis.
func product(d [3]uint32) string {
	if d[1] == 1 && d[2] == 1 {
		return ""
	}
	return fmt.Sprintf(" (%d × %d × %d)", d[0], d[1], d[2])
}

// maxAttributes is how many launch attributes a configuration can have.
const maxAttributes = 4

// attributes writes c's launch attributes to a and returns how many.
func (c *LaunchConfig) attributes(a *[maxAttributes]driver.CUlaunchAttribute) int {
	n := 0
	add := func(id driver.CUlaunchAttributeID, values ...uint32) {
		a[n].ID = id
		for i, v := range values {
			binary.NativeEndian.PutUint32(a[n].Value[4*i:], v)
		}
		n++
	}
	if c.Cooperative {
		add(driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1)
	}
	if c.clusters() {
		d := fillDims(c.Cluster)
		add(driver.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, d[0], d[1], d[2])
	}
	if c.Priority != nil {
		add(driver.CU_LAUNCH_ATTRIBUTE_PRIORITY, uint32(clampInt32(*c.Priority)))
	}
	if c.Programmatic {
		add(driver.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1)
	}
	return n
}

// launchError says what a refused launch asked for, and where the kernel itself
// sets a limit, what it is.
//
// Preconditions: the context is current, k is held.
func launchError(s *Stream, c *LaunchConfig, k *Kernel, r driver.CUresult) error {
	grid, block := c.dims()
	detail := fmt.Sprintf("kernel %q, grid %v, block %v, %d bytes of shared memory", k.name, grid, block, c.SharedMemory)
	api := s.ctx.drv.api
	threads := uint64(block[0]) * uint64(block[1]) * uint64(block[2])
	limit, lr := api.CuFuncGetAttribute(driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k.h)
	if lr == driver.CUDA_SUCCESS && threads > uint64(limit) {
		detail += fmt.Sprintf("; this kernel can run at most %d threads in a block", limit)
	}
	limit, lr = api.CuFuncGetAttribute(driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k.h)
	if lr == driver.CUDA_SUCCESS && int64(c.SharedMemory) > int64(limit) {
		detail += fmt.Sprintf("; this kernel may use %d bytes until its attribute max_dynamic_shared_size is raised", limit)
	}
	limit, lr = api.CuFuncGetAttribute(driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, k.h)
	if lr == driver.CUDA_SUCCESS && limit > MaxLocalSize/2 { // drivers keep some of it, by device
		detail += fmt.Sprintf("; this kernel has %d bytes of local memory for each thread, and a little less than %d can be had", limit, MaxLocalSize)
	}
	return s.ctx.fail("cuLaunchKernelEx", r, detail)
}
