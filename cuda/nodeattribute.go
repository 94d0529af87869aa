// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A HalfDoneError says that a call failed and that what it had begun could not
// be undone: what it was to change is in neither state.
type HalfDoneError struct {
	Err  error // why the call failed
	Undo error // why it could not be undone
}

// Error returns both texts.
func (e *HalfDoneError) Error() string {
	return fmt.Sprintf("%v; undoing it failed: %v", e.Err, e.Undo)
}

// Unwrap returns both errors.
func (e *HalfDoneError) Unwrap() []error { return []error{e.Err, e.Undo} }

// SameAttributes reports whether c and d differ at most in what the parameters
// of a kernel node say, which excludes cluster, cooperative, priority and
// programmatic.
func (c *LaunchConfig) SameAttributes(d *LaunchConfig) bool {
	return c.Cooperative == d.Cooperative && c.Programmatic == d.Programmatic && fillDims(c.Cluster) == fillDims(d.Cluster) &&
		(c.Priority == nil) == (d.Priority == nil) && (c.Priority == nil || *c.Priority == *d.Priority)
}

// Attributes lists what c has besides a shape, as "cooperative, priority -1";
// "" if nothing.
func (c *LaunchConfig) Attributes() string {
	var list []string
	if c.clusters() {
		list = append(list, fmt.Sprintf("cluster %v", fillDims(c.Cluster)))
	}
	if c.Cooperative {
		list = append(list, "cooperative")
	}
	if c.Priority != nil {
		list = append(list, fmt.Sprintf("priority %d", *c.Priority))
	}
	if c.Programmatic {
		list = append(list, "programmatic")
	}
	return strings.Join(list, ", ")
}

// neutral returns the value of an attribute with which a launch is as one
// without it.
func neutral(id driver.CUlaunchAttributeID) driver.CUlaunchAttribute {
	a := driver.CUlaunchAttribute{ID: id}
	if id == driver.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION {
		for i := range 3 {
			binary.NativeEndian.PutUint32(a.Value[4*i:], 1)
		}
	}
	return a
}

// nodeAttributes returns what has to be set at a kernel node that has the
// attributes of was, so that it has c's. If was is nil they are not known: those
// that c lacks stay. Programmatic launches are a matter of edges in a graph, not
// of nodes.
func (c LaunchConfig) nodeAttributes(was *LaunchConfig) []driver.CUlaunchAttribute {
	c.Programmatic = false
	if was != nil && c.SameAttributes(was) {
		return nil
	}
	var now, before [maxAttributes]driver.CUlaunchAttribute
	list := append([]driver.CUlaunchAttribute(nil), now[:c.attributes(&now)]...)
	if was == nil {
		return list
	}
	for _, b := range before[:was.attributes(&before)] {
		lost := b.ID != driver.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
		for _, a := range list {
			lost = lost && a.ID != b.ID
		}
		if lost {
			list = append(list, neutral(b.ID))
		}
	}
	return list
}

func (c *Context) setNodeAttribute(n NodeHandle, a *driver.CUlaunchAttribute, detail func() string) error {
	leave, err := c.Enter()
	if err != nil {
		return err
	}
	defer leave()
	value := driver.CUlaunchAttributeValue{Value: a.Value}
	if r := c.drv.api.CuGraphKernelNodeSetAttribute(driver.CUgraphNode(n), a.ID, &value); r != driver.CUDA_SUCCESS {
		return c.fail("cuGraphKernelNodeSetAttribute", r, detail())
	}
	return nil
}

// setNodeAttributes sets attributes until one is refused.
func (c *Context) setNodeAttributes(n NodeHandle, list []driver.CUlaunchAttribute, p *KernelNodeParams) error {
	for i := range list {
		err := c.setNodeAttribute(n, &list[i], func() string {
			grid, block := p.Config.dims()
			return fmt.Sprintf("kernel %q, grid %v, block %v, %s", p.Kernel.Name(), grid, block, p.Config.Attributes())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// AddKernelNode calls cuGraphAddKernelNode, and cuGraphKernelNodeSetAttribute for
// what p.Config has besides a shape. The node also has [Programmatic] edges from
// early, for which it calls cuGraphAddDependencies.
//
// Errors: a [*HalfDoneError] if g has a node now that the driver neither
// finished nor destroyed; otherwise an [*Error], and g is as it was.
func (c *Context) AddKernelNode(g GraphHandle, deps, early []NodeHandle, p *KernelNodeParams) (NodeHandle, error) {
	n, err := callNode(c, "cuGraphAddKernelNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
		return api.CuGraphAddKernelNode(driver.CUgraph(g), toNodes(deps), p.abi())
	})
	if err != nil {
		return 0, explained(err, "%v", p)
	}
	err = c.setNodeAttributes(n, p.Config.nodeAttributes(&LaunchConfig{}), p)
	if err == nil && len(early) > 0 {
		err = c.AddDependencies(g, early, slices.Repeat([]NodeHandle{n}, len(early)), slices.Repeat([]EdgeData{Programmatic}, len(early)))
	}
	if err == nil {
		return n, nil
	}
	// Nobody else knows the node, and it owns no graph: no lock is needed.
	if undo := c.destroyNode(n); undo != nil {
		return 0, &HalfDoneError{err, undo}
	}
	return 0, err
}

// TryKernelNode returns why AddKernelNode would fail, or nil: for graphs of which
// no node can be destroyed again.
func (c *Context) TryKernelNode(p *KernelNodeParams) error {
	return c.aside(func(g GraphHandle) error {
		_, err := c.AddKernelNode(g, nil, nil, p)
		return err
	})
}

// aside runs f with a graph of its own.
func (c *Context) aside(f func(GraphHandle) error) error {
	g, err := c.GraphCreate()
	if err != nil {
		return err
	}
	// No other graph is related to it, so no lock is needed. A failure concerns
	// nothing that the caller has: what f did stays done.
	defer func() {
		if err := c.destroyRelated("cuGraphDestroy", "graph", graphDestroy(g)); err != nil {
			c.drv.warn("graph", err)
		}
	}()
	return f(g)
}

// SetKernelNodeParams changes a node of a graph, for later instantiations. It
// calls cuGraphKernelNodeSetParams, and cuGraphKernelNodeSetAttribute for
// attributes that differ from those of was, the node's configuration so far.
// If was is nil that is not known, and attributes that p.Config lacks stay.
//
// Errors: a [*HalfDoneError] if the node can neither be changed nor be put back;
// otherwise an [*Error], and the node is as it was.
func (c *Context) SetKernelNodeParams(n NodeHandle, p *KernelNodeParams, was *LaunchConfig) error {
	list := p.Config.nodeAttributes(was)
	if len(list) == 0 {
		return explained(c.setKernelNodeParams(n, p.abi()), "%v", p)
	}
	return c.aside(func(g GraphHandle) error { return c.changeKernelNode(g, n, p, list) })
}

func (c *Context) setKernelNodeParams(n NodeHandle, a *driver.CUDA_KERNEL_NODE_PARAMS) error {
	return call0(c, "cuGraphKernelNodeSetParams", func(api driver.API) driver.CUresult {
		return api.CuGraphKernelNodeSetParams(driver.CUgraphNode(n), a)
	})
}

// changeKernelNode changes parameters and attributes together. In the graph
// aside it tries whether the driver takes them, and keeps a copy of the node to
// put it back: between the two calls, the driver may refuse what is fine as a
// whole, such as a cooperative launch of the old grid.
func (c *Context) changeKernelNode(aside GraphHandle, n NodeHandle, p *KernelNodeParams, list []driver.CUlaunchAttribute) error {
	if _, err := c.AddKernelNode(aside, nil, nil, p); err != nil {
		return err
	}
	spare, err := c.copyKernelNode(n, aside)
	if err != nil {
		return err
	}
	old := make([]driver.CUlaunchAttribute, len(list))
	for i := range list {
		v, err := call1(c, "cuGraphKernelNodeGetAttribute", func(api driver.API) (driver.CUlaunchAttributeValue, driver.CUresult) {
			return api.CuGraphKernelNodeGetAttribute(driver.CUgraphNode(n), list[i].ID)
		})
		if err != nil {
			return err
		}
		old[i] = driver.CUlaunchAttribute{ID: list[i].ID, Value: v.Value}
		if old[i].Value == [64]byte{} { // what a driver says of no cluster need not be what it takes
			old[i] = neutral(list[i].ID)
		}
	}
	if err = c.exchange(n, p, p.abi(), list); err == nil {
		return nil
	}
	a, undo := c.kernelNodeABI(spare)
	if undo == nil {
		undo = c.exchange(n, p, &a, old)
	}
	if undo != nil {
		return &HalfDoneError{err, undo}
	}
	return err
}

// exchange sets parameters while the attributes in list are neutral, and then
// these.
func (c *Context) exchange(n NodeHandle, p *KernelNodeParams, a *driver.CUDA_KERNEL_NODE_PARAMS, list []driver.CUlaunchAttribute) error {
	off := make([]driver.CUlaunchAttribute, len(list))
	for i := range list {
		off[i] = neutral(list[i].ID)
	}
	if err := c.setNodeAttributes(n, off, p); err != nil {
		return err
	}
	if err := c.setKernelNodeParams(n, a); err != nil {
		return err
	}
	return c.setNodeAttributes(n, list, p)
}

func (c *Context) kernelNodeABI(n NodeHandle) (driver.CUDA_KERNEL_NODE_PARAMS, error) {
	return call1(c, "cuGraphKernelNodeGetParams", func(api driver.API) (driver.CUDA_KERNEL_NODE_PARAMS, driver.CUresult) {
		return api.CuGraphKernelNodeGetParams(driver.CUgraphNode(n))
	})
}

// copyKernelNode adds a node with n's parameters to a graph; without its
// attributes and edges.
func (c *Context) copyKernelNode(n NodeHandle, to GraphHandle) (NodeHandle, error) {
	a, err := c.kernelNodeABI(n)
	if err != nil {
		return 0, err
	}
	return callNode(c, "cuGraphAddKernelNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
		return api.CuGraphAddKernelNode(driver.CUgraph(to), nil, &a)
	})
}
