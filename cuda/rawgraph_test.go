// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// The driver may say that an instantiation failed in the result field alone.
func TestInstantiateLooksAtTheResultField(t *testing.T) {
	stub, c := openStub(t)
	x, err := c.Instantiate(1, 0)
	require.NoError(t, err)
	require.NoError(t, c.ExecDestroy(x))

	stub.report = "structure" // makes the stub set the field
	_, err = c.Instantiate(1, 0)
	var bad *InstantiateError
	require.ErrorAs(t, err, &bad)
	require.EqualValues(t, 0x77, bad.Node)
	require.ErrorContains(t, err, "its structure is invalid")
	require.ErrorIs(t, err, ErrorInvalidValue)
	require.Zero(t, stub.living(), "the executable that came with the failure is gone")
}

func TestExecUpdateSaysWhy(t *testing.T) {
	stub, c := openStub(t)
	stub.on = func(call string) driver.CUresult {
		if call == "cuGraphExecUpdate" {
			return driver.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
		}
		return driver.CUDA_SUCCESS
	}
	err := c.ExecUpdate(1, 2)
	var bad *UpdateError
	require.ErrorAs(t, err, &bad)
	require.EqualValues(t, 0x88, bad.Node)
	require.ErrorIs(t, err, ErrorGraphExecUpdateFailure)
	require.ErrorContains(t, err, "its nodes or edges are not the same")
}

func TestMemcpyParams(t *testing.T) {
	a := (&MemcpyParams{Dst: 0x100, Src: 0x200, SrcHost: true, Size: 64}).abi()
	require.Equal(t, driver.CU_MEMORYTYPE_HOST, a.SrcMemoryType)
	require.EqualValues(t, 0x200, a.SrcHost)
	require.Zero(t, a.SrcDevice)
	require.Equal(t, driver.CU_MEMORYTYPE_UNIFIED, a.DstMemoryType)
	require.EqualValues(t, 0x100, a.DstDevice)
	require.Equal(t, []uint64{64, 1, 1}, []uint64{a.WidthInBytes, a.Height, a.Depth})
}

func TestNodeTypeNames(t *testing.T) {
	for ty := KernelNode; ty <= ConditionalNode; ty++ {
		require.NotContains(t, ty.String(), "node type")
	}
	require.Equal(t, "node type 14", NodeType(14).String())
}
