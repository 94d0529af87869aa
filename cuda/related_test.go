// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A slowInstantiation, once it is slow, is inside until it may go on.
type slowInstantiation struct {
	driver.API
	slow         bool
	inside, goOn chan struct{}
}

func (s *slowInstantiation) CuGraphInstantiateWithParams(
	g driver.CUgraph, p *driver.CUDA_GRAPH_INSTANTIATE_PARAMS,
) (driver.CUgraphExec, driver.CUresult) {
	if s.slow {
		close(s.inside)
		<-s.goOn
	}
	return s.API.CuGraphInstantiateWithParams(g, p)
}

// A graph or an executable is not destroyed during an instantiation of its clone, nor does anybody
// wait for that: a caller that clones holds the GIL.
func TestGraphsAreDestroyedApart(t *testing.T) {
	s := &slowInstantiation{inside: make(chan struct{}), goOn: make(chan struct{})}
	wrap := wrapForTest
	wrapForTest = func(api driver.API) driver.API {
		s.API = wrap(api)
		return s
	}
	defer func() { wrapForTest = wrap }()
	c := openSimulated(t, Options{})
	g, err := c.GraphCreate()
	require.NoError(t, err)
	clone, err := c.GraphClone(g)
	require.NoError(t, err)

	x, err := c.Instantiate(g, 0)
	require.NoError(t, err)
	s.slow = true

	type made struct {
		x   ExecHandle
		err error
	}
	result := make(chan made)
	go func() {
		x, err := c.Instantiate(clone, 0)
		result <- made{x, err}
	}()
	<-s.inside
	done, err := c.TryGraphDestroy(g)
	require.NoError(t, err)
	require.False(t, done)
	done, err = c.TryExecDestroy(x)
	require.NoError(t, err)
	require.False(t, done)
	again, err := c.GraphClone(g)
	require.NoError(t, err)
	_, err = c.AddChildGraphNode(again, nil, g)
	require.NoError(t, err)

	close(s.goOn)
	m := <-result
	require.NoError(t, m.err)
	done, err = c.TryGraphDestroy(g)
	require.NoError(t, err)
	require.True(t, done)
	done, err = c.TryExecDestroy(x)
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, c.ExecDestroy(m.x))
	require.NoError(t, c.GraphDestroy(clone))
	require.NoError(t, c.GraphDestroy(again))
}
