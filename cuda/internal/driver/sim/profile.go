// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm"
)

// profile is what differs between compute capabilities. From the CUDA C++
// Programming Guide, "Compute Capabilities: Technical Specifications".
type profile struct {
	threadsPerSM int32
	blocksPerSM  int32
	sharedPerSM  int32
	sharedOptin  int32
}

// profiles is keyed by 10 * major + minor.
var profiles = map[int]profile{
	75:  {threadsPerSM: 1024, blocksPerSM: 16, sharedPerSM: 64 << 10, sharedOptin: 64 << 10},
	80:  {threadsPerSM: 2048, blocksPerSM: 32, sharedPerSM: 164 << 10, sharedOptin: 163 << 10},
	86:  {threadsPerSM: 1536, blocksPerSM: 16, sharedPerSM: 100 << 10, sharedOptin: 99 << 10},
	89:  {threadsPerSM: 1536, blocksPerSM: 24, sharedPerSM: 100 << 10, sharedOptin: 99 << 10},
	90:  {threadsPerSM: 2048, blocksPerSM: 32, sharedPerSM: 228 << 10, sharedOptin: 227 << 10},
	100: {threadsPerSM: 2048, blocksPerSM: 32, sharedPerSM: 228 << 10, sharedOptin: 227 << 10},
	120: {threadsPerSM: 1536, blocksPerSM: 24, sharedPerSM: 100 << 10, sharedOptin: 99 << 10},
}

func profileList() string {
	var names []string
	for _, cc := range slices.Sorted(maps.Keys(profiles)) {
		names = append(names, fmt.Sprintf("%d.%d", cc/10, cc%10))
	}
	return strings.Join(names, ", ")
}

// Limits that all profiles share.
const (
	multiprocessors   = 8
	warpSize          = 32
	maxBlockThreads   = 1024
	maxGridX          = 1<<31 - 1
	maxGridYZ         = 1<<16 - 1
	maxBlockXY        = 1024
	maxBlockZ         = 64
	sharedPerBlock    = 48 << 10
	registersPerSM    = 64 << 10
	leastPriority     = 0
	greatestPriority  = -5
	constantBytes     = 64 << 10
	pretendedClockKHz = 1000000
)

// attributes fills the table behind cuDeviceGetAttribute. An attribute that is
// not in it, but known, is 0: the feature is absent.
func (c *config) attributes(ordinal int) map[driver.CUdevice_attribute]int32 {
	p := profiles[c.major*10+c.minor]
	all := map[driver.CUdevice_attribute]int32{
		driver.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:                 maxBlockThreads,
		driver.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:                       maxBlockXY,
		driver.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:                       maxBlockXY,
		driver.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:                       maxBlockZ,
		driver.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:                        maxGridX,
		driver.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:                        maxGridYZ,
		driver.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:                        maxGridYZ,
		driver.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:           sharedPerBlock,
		driver.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:     p.sharedOptin,
		driver.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:  p.sharedPerSM,
		driver.CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:      ptxvm.ReservedShared(c.major),
		driver.CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:                 constantBytes,
		driver.CU_DEVICE_ATTRIBUTE_WARP_SIZE:                             warpSize,
		driver.CU_DEVICE_ATTRIBUTE_MAX_PITCH:                             maxGridX,
		driver.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:               registersPerSM,
		driver.CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:      registersPerSM,
		driver.CU_DEVICE_ATTRIBUTE_CLOCK_RATE:                            pretendedClockKHz,
		driver.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:                     pretendedClockKHz,
		driver.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:               64,
		driver.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:                         4 << 20,
		driver.CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:                     512,
		driver.CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:                           1,
		driver.CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:                    2,
		driver.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:                  multiprocessors,
		driver.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:        p.threadsPerSM,
		driver.CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:         p.blocksPerSM,
		driver.CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:                   1,
		driver.CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:                    1,
		driver.CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:                         int32(ordinal),
		driver.CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:                    1,
		driver.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:              int32(c.major),
		driver.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:              int32(c.minor),
		driver.CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:           1,
		driver.CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:             1,
		driver.CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:              1,
		driver.CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:                        1,
		driver.CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:             1,
		driver.CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:          1,
		driver.CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: 1,
		driver.CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:                toInt(c.pageable),
		driver.CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:                    1,
		driver.CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:                     textureAlignment,
		driver.CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:               texturePitchAlignment,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH:        mostTexture1DLinear,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH:        mostTexture2DLinear,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT:       mostTexture2DHeight,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH:        mostTexture2DPitch,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH:               mostArray1D,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH:               mostArrayWidth,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT:              mostArrayHeight,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH:               mostArray3D,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT:              mostArray3D,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH:               mostArray3D,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH:       mostArrayLayered,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS:      mostArrayLayers,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH:       mostArrayLayered,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT:      mostArrayLayered,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS:      mostArrayLayers,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH:          mostCube,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH:  mostCube,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS: mostCubeFaces,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH:          mostCube,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH:  mostCube,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS: mostCubeFaces,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH:     mostMipmapped,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH:     mostMipmapped,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT:    mostMipmapped,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH:               mostSurface1D,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH:               mostArrayWidth,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT:              mostArrayHeight,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH:               mostArray3D,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT:              mostArray3D,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH:               mostArray3D,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH:       mostArrayLayered,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS:      mostArrayLayers,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH:       mostArrayLayered,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT:      mostArrayLayered,
		driver.CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS:      mostArrayLayers,
		driver.CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:           toInt(c.major >= 9),
		driver.CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS:             1,
		driver.CU_DEVICE_ATTRIBUTE_NUMA_ID:                               -1,
		driver.CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:                          0,
		driver.CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:                 1,
		driver.CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:               1,
		driver.CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:     1,

		driver.CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: 1,
		driver.CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:           1,
		driver.CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:           1,
	}
	maps.Copy(all, memoryAttributes)
	return all
}

// memoryAttributes say which kinds of memory there are, and what processes share.
var memoryAttributes = map[driver.CUdevice_attribute]int32{
	driver.CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED:        1,
	driver.CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: 1,
	driver.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:                      1,
	driver.CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:              int32(driver.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
	driver.CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:                         1,
	driver.CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED:                 1,
	driver.CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED:            1,
}

func toInt(b bool) int32 {
	if b {
		return 1
	}
	return 0
}
