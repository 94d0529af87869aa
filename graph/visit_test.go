// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// A callHook does something when the driver was called, on the goroutine that has
// called it.
type callHook struct {
	name string
	do   func()
}

func (h *callHook) Write(line []byte) (int, error) {
	if do := h.do; do != nil && bytes.Contains(line, []byte(h.name)) {
		h.do = nil
		do()
	}
	return len(line), nil
}

// onTwoDevices returns a graph that allocates on another device than its own.
func onTwoDevices(t *testing.T, hook *callHook) (g *Graph, there *cuda.Context) {
	drv, err := cuda.Open(cuda.Options{Driver: "sim", Sim: "devices=2", CallHost: callHost, Trace: hook})
	require.NoError(t, err)
	var contexts [2]*cuda.Context
	for i := range contexts {
		dev, err := drv.Device(i)
		require.NoError(t, err)
		contexts[i], err = dev.Context()
		require.NoError(t, err)
	}
	g, err = New(contexts[0], Options{})
	require.NoError(t, err)
	_, err = g.AllocOn(cuda.AllocNodeParams{Size: 4, On: contexts[1], Peers: []*cuda.Device{contexts[0].Device()}}, NodeOptions{})
	require.NoError(t, err)
	return g, contexts[1]
}

// What is being instantiated keeps a reset of another device out, as what has been
// does, unless it fails.
func TestNoResetAmidAnInstantiation(t *testing.T) {
	const refused = "1 executable(s) of graphs of other devices have nodes or allocate memory there"
	hook := &callHook{name: "cuGraphInstantiate"}
	g, there := onTwoDevices(t, hook)
	amid := false
	hook.do = func() { amid = there.HasGuests() }
	x, err := g.Instantiate(ExecOptions{})
	require.NoError(t, err)
	require.True(t, amid)
	hook.do = func() { amid = false }
	_, err = g.Instantiate(ExecOptions{}) // of memory there can be one at a time
	require.ErrorIs(t, err, cuda.ErrorNotSupported)
	require.False(t, amid)
	require.ErrorContains(t, there.Device().Reset(), refused)
	require.NoError(t, x.Close())
	eventually(t, "destroyed", func() bool { return !there.HasGuests() })
	require.NoError(t, there.Device().Reset())
	_, err = g.Instantiate(ExecOptions{})
	require.ErrorIs(t, err, cuda.ErrLost)
	require.False(t, there.HasGuests())
	require.NoError(t, g.Close())
}
