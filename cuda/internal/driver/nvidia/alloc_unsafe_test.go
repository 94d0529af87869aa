// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// The parameters hold the address of others: cgo lets only pinned ones pass.
func TestAllocationNodeForPeers(t *testing.T) {
	s, d := openStandin(t)
	access := []driver.CUmemAccessDesc{
		{Location: driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_DEVICE, ID: 3}, Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
		{Location: driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_DEVICE, ID: 5}, Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READ},
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&access[0])
	_, r := d.CuGraphAddMemAllocNode(5, nil, &driver.CUDA_MEM_ALLOC_NODE_PARAMS{
		PoolProps: driver.CUmemPoolProps{AllocType: 1, LocationType: 1, LocationID: 7}, Bytesize: 64,
		AccessDescs: unsafe.Pointer(&access[0]), AccessDescCount: uint64(len(access)),
	})
	require.Zero(t, r)
	require.Equal(t, []string{"cuGraphAddMemAllocNode 0x5 deps=0:(nil)", "  1 1 7 2 64", "  1 3 3", "  1 5 1"}, s.calls(t))
}
