// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"io"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// pokeNode are the parameters of a node that runs poke. They stay valid until
// the test ends.
func pokeNode(t *testing.T, c *Context, config LaunchConfig) *KernelNodeParams {
	values := &struct {
		p    uint64
		list [1]unsafe.Pointer
	}{}
	var pins runtime.Pinner
	pins.Pin(values)
	t.Cleanup(pins.Unpin)
	values.list[0] = unsafe.Pointer(&values.p)
	return &KernelNodeParams{Kernel: kernel(t, c, "poke"), Config: config, Params: unsafe.Pointer(&values.list)}
}

// kernelOperations are graphOperations with kernels.
func kernelOperations(t *testing.T, c *Context, g GraphHandle) map[string]func() (io.Closer, error) {
	priority, config := -1, one()
	config.Cooperative, config.Priority = true, &priority
	plain, full := pokeNode(t, c, one()), pokeNode(t, c, config)
	add := func(p *KernelNodeParams) func() (io.Closer, error) {
		return func() (io.Closer, error) {
			n, err := c.AddKernelNode(g, nil, nil, p)
			return nodeCloser{c, n}, err
		}
	}
	return map[string]func() (io.Closer, error){
		"add kernel node":                 add(plain),
		"add kernel node with attributes": add(full),
	}
}

func TestKernelNodeAttributes(t *testing.T) {
	c := openSimulated(t, Options{})
	g, err := c.GraphCreate()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.GraphDestroy(g)) })
	priority, big := -1, LaunchConfig{Grid: [3]uint32{1 << 20}, Block: [3]uint32{1}, Cooperative: true}
	_, err = c.AddKernelNode(g, nil, nil, pokeNode(t, c, big))
	require.ErrorContains(t, err, `cuGraphKernelNodeSetAttribute: CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE`)
	require.ErrorContains(t, err, `kernel "poke", grid [1048576 1 1], block [1 1 1], cooperative`)
	nodes, err := c.GraphNodes(g)
	require.NoError(t, err)
	require.Empty(t, nodes)
	require.ErrorContains(t, c.TryKernelNode(pokeNode(t, c, big)), "TOO_LARGE")
	cluster := one()
	cluster.Cluster = [3]uint32{1}
	require.NoError(t, c.TryKernelNode(pokeNode(t, c, cluster)))

	value := func(n NodeHandle, id driver.CUlaunchAttributeID) int {
		v, r := c.drv.api.CuGraphKernelNodeGetAttribute(driver.CUgraphNode(n), id)
		require.Equal(t, driver.CUDA_SUCCESS, r)
		return int(int8(v.Value[0]))
	}
	full, plain := one(), one()
	full.Cooperative, full.Priority = true, &priority
	n, err := c.AddKernelNode(g, nil, nil, pokeNode(t, c, full))
	require.NoError(t, err)
	require.Equal(t, 1, value(n, driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE))
	require.Equal(t, -1, value(n, driver.CU_LAUNCH_ATTRIBUTE_PRIORITY))
	// Attributes that are not known stay, if the configuration lacks them.
	require.NoError(t, c.SetKernelNodeParams(n, pokeNode(t, c, plain), nil))
	require.Equal(t, 1, value(n, driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE))
	require.NoError(t, c.SetKernelNodeParams(n, pokeNode(t, c, plain), &full))
	require.Equal(t, 0, value(n, driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE))
	require.Equal(t, 0, value(n, driver.CU_LAUNCH_ATTRIBUTE_PRIORITY))
}

func TestSameAttributes(t *testing.T) {
	a, b := -1, -1
	c := LaunchConfig{Cluster: [3]uint32{2}, Priority: &a}
	require.True(t, c.SameAttributes(&LaunchConfig{Grid: [3]uint32{9}, Cluster: [3]uint32{2, 1, 1}, Priority: &b}))
	require.False(t, c.SameAttributes(&LaunchConfig{Cluster: [3]uint32{2}}))
	require.False(t, c.SameAttributes(&LaunchConfig{Priority: &b}))
	b = 0
	require.False(t, c.SameAttributes(&LaunchConfig{Cluster: [3]uint32{2}, Priority: &b}))
	require.Equal(t, "cluster [2 1 1], priority -1", c.Attributes())
	require.Empty(t, new(LaunchConfig).Attributes())
	list := new(LaunchConfig).nodeAttributes(&c)
	require.Equal(t, driver.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, list[0].ID)
	require.Equal(t, []byte{1, 0, 0, 0, 1, 0, 0, 0, 1}, list[0].Value[:9], "no cluster is one of one block")
	require.Equal(t, driver.CU_LAUNCH_ATTRIBUTE_PRIORITY, list[1].ID)
}

func TestHalfDone(t *testing.T) {
	why, undo := errors.New("why"), errors.New("undo")
	err := &HalfDoneError{why, undo}
	require.EqualError(t, err, "why; undoing it failed: undo")
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, err, undo)
}
