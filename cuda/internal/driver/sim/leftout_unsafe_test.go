// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// launchWith launches with one attribute.
func launchWith(o *one, id driver.CUlaunchAttributeID, value uint32) driver.CUresult {
	a := driver.CUlaunchAttribute{ID: id}
	for i := range 3 {
		binary.LittleEndian.PutUint32(a.Value[4*i:], value)
	}
	config := o.config
	config.Attrs, config.NumAttrs = unsafe.Pointer(&a), 1
	return o.CuLaunchKernelEx(&config, o.kernel, o.args)
}

// physical makes memory with properties that differ from plain ones.
func physical(o *one, change func(p *driver.CUmemAllocationProp)) driver.CUresult {
	p := *pinnedOn(0)
	change(&p)
	_, r := o.CuMemCreate(granule, &p, 0)
	return r
}

// accessTo makes memory of device 1 accessible.
func accessTo(t *testing.T, o *one, desc driver.CUmemAccessDesc) driver.CUresult {
	p, r := o.CuMemAddressReserve(granule, 0, 0, 0)
	ok(t, r)
	h, r := o.CuMemCreate(granule, pinnedOn(1), 0)
	ok(t, r)
	ok(t, o.CuMemMap(p, granule, 0, h, 0))
	return o.CuMemSetAccess(p, granule, []driver.CUmemAccessDesc{desc})
}

func pool(o *one, location, handles int32) driver.CUresult {
	_, r := o.CuMemPoolCreate(&driver.CUmemPoolProps{AllocType: 1, LocationType: location, HandleTypes: handles})
	return r
}

// tiled encodes a tensor map of three dimensions, whose boxes have rows of 16
// elements.
func tiled(o *one, typ driver.CUtensorMapDataType, interleave driver.CUtensorMapInterleave, swizzle driver.CUtensorMapSwizzle) driver.CUresult {
	_, r := o.CuTensorMapEncodeTiled(typ, o.memory, []uint64{64, 2, 2}, []uint64{256, 512}, []uint32{16, 1, 1}, []uint32{1, 1, 1}, interleave, swizzle, 0, 0)
	return r
}

// leftOut holds the calls that this driver does not support, keyed by the words
// of the documentation.
var leftOut = map[string]func(t *testing.T, o *one) driver.CUresult{
	"CUDA arrays that are sparse or for gathers": func(_ *testing.T, o *one) driver.CUresult {
		_, r := o.CuArray3DCreate(&driver.CUDA_ARRAY3D_DESCRIPTOR{
			Width: 4, Height: 4, Format: driver.CU_AD_FORMAT_FLOAT, NumChannels: 1, Flags: 0x40, // CUDA_ARRAY3D_SPARSE
		})
		return r
	},
	"launches with clusters of more than one block": func(_ *testing.T, o *one) driver.CUresult {
		return launchWith(o, driver.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 2)
	},
	"``cuOccupancyMaxPotentialClusterSize``": func(_ *testing.T, o *one) driver.CUresult {
		_, r := o.CuOccupancyMaxPotentialClusterSize(o.kernel, &o.config)
		return r
	},
	"``cuOccupancyMaxActiveClusters``": func(_ *testing.T, o *one) driver.CUresult {
		_, r := o.CuOccupancyMaxActiveClusters(o.kernel, &o.config)
		return r
	},
	"other launch attributes that change what a launch means": func(_ *testing.T, o *one) driver.CUresult {
		const deviceUpdatable = 13 // CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
		return launchWith(o, deviceUpdatable, 1)
	},
	"graph nodes of kinds that have no call of their own, but for conditional ones and graphs": func(t *testing.T, o *one) driver.CUresult {
		g, r := o.CuGraphCreate(0)
		ok(t, r)
		_, _, r = o.CuGraphAddNode(g, nil, &driver.CUgraphNodeParams{Type: driver.CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT})
		return r
	},
	"host registration of another device's memory": func(_ *testing.T, o *one) driver.CUresult {
		const ioMemory = 4 // CU_MEMHOSTREGISTER_IOMEMORY
		return o.CuMemHostRegister(4096, 4096, ioMemory)
	},
	"graphs that a kernel launches": func(t *testing.T, o *one) driver.CUresult {
		g, r := o.CuGraphCreate(0)
		ok(t, r)
		_, r = o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{Flags: driver.CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH})
		return r
	},
	"memory pools that are shared by other handles than file descriptors": func(_ *testing.T, o *one) driver.CUresult { return pool(o, 1, 8) },
	"events of several processes in graphs": func(t *testing.T, o *one) driver.CUresult {
		e, r := o.CuEventCreate(driver.CU_EVENT_INTERPROCESS | driver.CU_EVENT_DISABLE_TIMING)
		ok(t, r)
		g, r := o.CuGraphCreate(0)
		ok(t, r)
		_, r = o.CuGraphAddEventRecordNode(g, nil, e)
		return r
	},
	"virtual memory that is shared by other handles than file descriptors": func(_ *testing.T, o *one) driver.CUresult {
		return physical(o, func(p *driver.CUmemAllocationProp) { p.RequestedHandleTypes = 8 })
	},
	"virtual memory on the host": func(_ *testing.T, o *one) driver.CUresult {
		return physical(o, func(p *driver.CUmemAllocationProp) { p.Location.Type = 2 })
	},
	"virtual memory that is compressed, or for special uses": func(_ *testing.T, o *one) driver.CUresult {
		return physical(o, func(p *driver.CUmemAllocationProp) { p.CompressionType = 1 })
	},
	"virtual memory that may only be read": func(t *testing.T, o *one) driver.CUresult {
		return accessTo(t, o, driver.CUmemAccessDesc{Location: onDevice(1), Flags: 1})
	},
	"textures of views of arrays": func(_ *testing.T, o *one) driver.CUresult {
		_, r := o.CuTexObjectCreate(&driver.CUDA_RESOURCE_DESC{ResType: driver.CU_RESOURCE_TYPE_ARRAY}, &driver.CUDA_TEXTURE_DESC{}, &driver.CUDA_RESOURCE_VIEW_DESC{})
		return r
	},
	"tensor maps of interleaved layouts, of packed types, or that change numbers": func(t *testing.T, o *one) driver.CUresult {
		require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, tiled(o, driver.CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 0, 0))
		require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, tiled(o, driver.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 0, 0))
		return tiled(o, driver.CU_TENSOR_MAP_DATA_TYPE_UINT8, driver.CU_TENSOR_MAP_INTERLEAVE_16B, 0)
	},
	"tensor maps with swizzles of more than 16 bytes, or with rows that are shorter than the swizzle": func(t *testing.T, o *one) driver.CUresult {
		require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, tiled(o, driver.CU_TENSOR_MAP_DATA_TYPE_UINT8, 0, driver.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B))
		return tiled(o, driver.CU_TENSOR_MAP_DATA_TYPE_UINT8, 0, driver.CU_TENSOR_MAP_SWIZZLE_32B)
	},
	"pointer attributes that say nothing of the allocation itself": func(_ *testing.T, o *one) driver.CUresult {
		const peerTokens = 5 // CU_POINTER_ATTRIBUTE_P2P_TOKENS
		_, r := o.CuPointerGetAttribute(peerTokens, o.memory)
		return r
	},
}

func TestLeftOut(t *testing.T) {
	for name, call := range leftOut {
		o := newOne(t, open(t, "devices=2"))
		require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED.String(), call(t, o).String(), name)
		require.Equal(t, driver.CUDA_SUCCESS, o.CuStreamSynchronize(o.stream), name)
	}
}

// TestCallsLeftToBase requires a line in leftOut, under the call's name, for each
// call that this driver has no method for.
func TestCallsLeftToBase(t *testing.T) {
	base, sim := reflect.TypeFor[*driver.Base](), reflect.TypeOf(open(t, ""))
	require.Positive(t, base.NumMethod())
	for m := range base.Methods() {
		own, found := sim.MethodByName(m.Name)
		require.True(t, found, m.Name)
		// The compiler generates the methods that a struct gets from an embedded one.
		pc := own.Func.Pointer()
		if file, _ := runtime.FuncForPC(pc).FileLine(pc); file == "<autogenerated>" {
			require.Contains(t, leftOut, "``c"+m.Name[1:]+"``")
		}
	}
}

func TestDocumentationListsWhatIsLeftOut(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "concepts", "simulated.rst"))
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "\nCalls\n-----\n")
	require.True(t, found)
	text, _, found = strings.Cut(text, "\nAs CUDA does\n")
	require.True(t, found)
	listed := map[string]bool{}
	for line := range strings.Lines(text) {
		if item, ok := strings.CutPrefix(line, "* "); ok {
			listed[strings.TrimRight(item, ";.\n")] = true
		}
	}
	for name := range leftOut {
		require.True(t, listed[name], "the page does not list: %s", name)
		delete(listed, name)
	}
	require.Empty(t, listed, "listed, and not tested")
}
