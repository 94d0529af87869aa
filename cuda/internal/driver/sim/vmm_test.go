// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// granule is the granularity of virtual memory.
const granule = 2 << 20

func onDevice(dev int32) driver.CUmemLocation {
	return driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_DEVICE, ID: dev}
}

func pinnedOn(dev int32) *driver.CUmemAllocationProp {
	return &driver.CUmemAllocationProp{Type: driver.CU_MEM_ALLOCATION_TYPE_PINNED, Location: onDevice(dev)}
}

// mapGranule maps a fresh granule of device 0 at p.
func mapGranule(t *testing.T, api driver.API, p driver.CUdeviceptr) {
	t.Helper()
	h, r := api.CuMemCreate(granule, pinnedOn(0), 0)
	ok(t, r)
	ok(t, api.CuMemMap(p, granule, 0, h, 0))
	ok(t, api.CuMemRelease(h))
	ok(t, api.CuMemSetAccess(p, granule, []driver.CUmemAccessDesc{{Location: onDevice(0), Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE}}))
}

func TestReservationTakesAHint(t *testing.T) {
	o := newOne(t, open(t, ""))
	first, r := o.CuMemAddressReserve(granule, 0, 0, 0)
	ok(t, r)
	second, r := o.CuMemAddressReserve(granule, 0, first+granule, 0)
	ok(t, r)
	require.Equal(t, first+granule, second)
	third, r := o.CuMemAddressReserve(granule, 0, first+granule, 0)
	ok(t, r)
	require.NotEqual(t, first+granule, third, "taken: the hint is one")

	mapGranule(t, o, first)
	mapGranule(t, o, second)
	ok(t, o.CuMemcpyAsync(second-8, o.memory, 16, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	base, size, r := o.CuMemGetAddressRange(second)
	ok(t, r)
	require.Equal(t, first, base)
	require.EqualValues(t, 2*granule, size)
	id := func(p driver.CUdeviceptr) uint64 {
		v, r := o.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_BUFFER_ID, p)
		ok(t, r)
		return v
	}
	require.NotZero(t, id(first))
	require.NotEqual(t, id(first), id(second))

	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, o.CuMemAddressFree(first, granule), "it is mapped")
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, o.CuMemFree(first))
	ok(t, o.CuMemUnmap(first, granule))
	ok(t, o.CuMemAddressFree(first, granule))
	ok(t, o.CuMemcpyAsync(second, o.memory, 8, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
} // closing the driver releases what is left

func TestGraphWithUnmappedMemory(t *testing.T) {
	o := newOne(t, open(t, ""))
	p, r := o.CuMemAddressReserve(granule, 0, 0, 0)
	ok(t, r)
	mapGranule(t, o, p)
	g, r := o.CuGraphCreate(0)
	ok(t, r)
	_, r = o.CuGraphAddMemsetNode(g, nil, &driver.CUDA_MEMSET_NODE_PARAMS{Dst: p, ElementSize: 1, Width: 1, Height: 1}, 0)
	ok(t, r)
	x, r := o.CuGraphInstantiateWithParams(g, &driver.CUDA_GRAPH_INSTANTIATE_PARAMS{})
	ok(t, r)
	ok(t, o.CuGraphLaunch(x, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
	ok(t, o.CuMemUnmap(p, granule))
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, o.CuGraphLaunch(x, o.stream))
	require.Contains(t, o.FaultReport(o.ctx), "freed mapped memory of 2097152 bytes")
	mapGranule(t, o, p)
	ok(t, o.CuGraphLaunch(x, o.stream))
	ok(t, o.CuStreamSynchronize(o.stream))
}

func TestVirtualMemoryThatIsNotSupported(t *testing.T) {
	api := open(t, "devices=2")
	_, r := api.CuMemAddressReserve(granule, 0, 0, 0)
	require.Equal(t, driver.CUDA_ERROR_NOT_INITIALIZED, r)
	ok(t, api.CuInit(0))
	shared, onHost, unknown := pinnedOn(0), pinnedOn(0), pinnedOn(2)
	shared.RequestedHandleTypes = 8 // CU_MEM_HANDLE_TYPE_FABRIC
	onHost.Location.Type = 2
	for _, tt := range []struct {
		name string
		prop *driver.CUmemAllocationProp
		want driver.CUresult
	}{
		{"shared by other handles than file descriptors", shared, driver.CUDA_ERROR_NOT_SUPPORTED},
		{"on the host", onHost, driver.CUDA_ERROR_NOT_SUPPORTED},
		{"on no device", unknown, driver.CUDA_ERROR_INVALID_DEVICE},
		{"nothing", nil, driver.CUDA_ERROR_INVALID_VALUE},
	} {
		_, r := api.CuMemCreate(granule, tt.prop, 0)
		require.Equal(t, tt.want, r, tt.name)
		_, r = api.CuMemGetAllocationGranularity(tt.prop, driver.CU_MEM_ALLOC_GRANULARITY_MINIMUM)
		require.Equal(t, tt.want, r, tt.name)
	}
	p, r := api.CuMemAddressReserve(granule, 0, 0, 0)
	ok(t, r)
	h, r := api.CuMemCreate(granule, pinnedOn(1), 0)
	ok(t, r)
	ok(t, api.CuMemMap(p, granule, 0, h, 0))
	for _, tt := range []struct {
		name string
		desc driver.CUmemAccessDesc
		want driver.CUresult
	}{
		{"by another device", driver.CUmemAccessDesc{Location: onDevice(0), Flags: 3}, driver.CUDA_SUCCESS},
		{"for reading", driver.CUmemAccessDesc{Location: onDevice(1), Flags: 1}, driver.CUDA_ERROR_NOT_SUPPORTED},
		{"by the host", driver.CUmemAccessDesc{Location: driver.CUmemLocation{Type: 2}, Flags: 3}, driver.CUDA_ERROR_NOT_SUPPORTED},
		{"by no device", driver.CUmemAccessDesc{Location: onDevice(2), Flags: 3}, driver.CUDA_ERROR_INVALID_DEVICE},
		{"by its device", driver.CUmemAccessDesc{Location: onDevice(1), Flags: 3}, driver.CUDA_SUCCESS},
	} {
		require.Equal(t, tt.want, api.CuMemSetAccess(p, granule, []driver.CUmemAccessDesc{tt.desc}), tt.name)
	}
	require.Equal(t, driver.CUDA_ERROR_INVALID_VALUE, api.CuMemRelease(h+1))
	_, r = api.CuMemAddressReserve(1<<60, 0, 0, 0)
	require.Equal(t, driver.CUDA_ERROR_OUT_OF_MEMORY, r)
}
