// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// EdgeData says what in a node the edge from it waits for. The zero value is
// its completion.
type EdgeData struct {
	FromPort, ToPort, Type uint8
}

// What an edge between two kernels can wait for instead of completion. From
// cuda.h, CUDA 12.4: CU_GRAPH_KERNEL_NODE_PORT_*, with
// CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.
var (
	// Programmatic edges let a kernel start once all blocks of the one before it
	// have executed griddepcontrol.launch_dependents, or ended. What that kernel
	// writes is visible only after griddepcontrol.wait.
	Programmatic = EdgeData{FromPort: driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, Type: driver.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC}
	// LaunchOrder edges let a kernel start once all blocks of the one before it
	// have started.
	LaunchOrder = EdgeData{FromPort: driver.CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, Type: driver.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC}
	// LaunchCompletion edges do the same, for griddepcontrol.wait does not see
	// them. They need no compute capability.
	LaunchCompletion = EdgeData{FromPort: driver.CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER}
)

// String returns "programmatic", "launch_order", "launch_completion", "" for the
// zero value, and the numbers for what other libraries' graphs may have.
func (d EdgeData) String() string {
	switch d {
	case EdgeData{}:
		return ""
	case Programmatic:
		return "programmatic"
	case LaunchOrder:
		return "launch_order"
	case LaunchCompletion:
		return "launch_completion"
	}
	return fmt.Sprintf("type %d, port %d to %d", d.Type, d.FromPort, d.ToPort)
}

// IsComplete reports whether the edge waits for the completion of its node.
func (d EdgeData) IsComplete() bool { return d.FromPort == 0 }

// CheckProgrammatic returns why dev has no programmatic dependent launch, or nil.
// op is the call that needs it.
//
// Errors: [ErrorNotSupported].
func (d *Device) CheckProgrammatic(op string) error {
	l, err := d.launchLimits()
	if err != nil || l.computeMajor >= 9 {
		return err
	}
	return &Error{
		Op: op, Result: ErrorNotSupported,
		Detail: fmt.Sprintf("programmatic dependent launch needs compute capability 9.0, %v has %d.%d", d, l.computeMajor, l.computeMinor),
	}
}

func toEdges(data []EdgeData) []driver.CUgraphEdgeData {
	out := make([]driver.CUgraphEdgeData, len(data))
	for i, d := range data {
		out[i] = driver.CUgraphEdgeData{FromPort: d.FromPort, ToPort: d.ToPort, Type: d.Type}
	}
	return out
}

// AddDependencies makes to[i] depend on what data[i] says of from[i]. It calls
// cuGraphAddDependencies.
func (c *Context) AddDependencies(g GraphHandle, from, to []NodeHandle, data []EdgeData) error {
	return call0(c, "cuGraphAddDependencies", func(api driver.API) driver.CUresult {
		return api.CuGraphAddDependencies(driver.CUgraph(g), toNodes(from), toNodes(to), toEdges(data))
	})
}

// RemoveDependencies undoes AddDependencies, with the same data. It calls
// cuGraphRemoveDependencies.
func (c *Context) RemoveDependencies(g GraphHandle, from, to []NodeHandle, data []EdgeData) error {
	return call0(c, "cuGraphRemoveDependencies", func(api driver.API) driver.CUresult {
		return api.CuGraphRemoveDependencies(driver.CUgraph(g), toNodes(from), toNodes(to), toEdges(data))
	})
}

// Edges are the edges of a driver graph: To[i] depends on what Data[i] says of
// From[i].
type Edges struct {
	From, To []NodeHandle
	Data     []EdgeData
}

// GraphEdges calls cuGraphGetEdges.
func (c *Context) GraphEdges(g GraphHandle) (Edges, error) {
	leave, err := c.Enter()
	if err != nil {
		return Edges{}, err
	}
	defer leave()
	from, to, data, r := c.drv.api.CuGraphGetEdges(driver.CUgraph(g))
	if err := c.check("cuGraphGetEdges", r); err != nil {
		return Edges{}, err
	}
	e := Edges{fromNodes(from), fromNodes(to), make([]EdgeData, len(data))}
	for i, d := range data {
		e.Data[i] = EdgeData{d.FromPort, d.ToPort, d.Type}
	}
	return e, nil
}

// Completed returns, for each node, the nodes whose completion it waits for:
// what a capture goes by to tell whether a stream was joined.
func (e *Edges) Completed() map[NodeHandle][]NodeHandle {
	before := make(map[NodeHandle][]NodeHandle, len(e.To))
	for i, n := range e.To {
		if e.Data[i].IsComplete() {
			before[n] = append(before[n], e.From[i])
		}
	}
	return before
}
