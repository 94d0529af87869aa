// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/cudago/cudago/cuda/internal/driver"

// A launchRecord is an event that a launch records: what waits for it need not
// wait for the kernel's completion. Here it does, which is always allowed,
// unless it is captured: then data becomes that of edges.
type launchRecord struct {
	event *event
	data  driver.CUgraphEdgeData
}

// recordsEvent reads an attribute that records an event: cuda.h,
// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT and
// CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT.
func (w *kernelWork) recordsEvent(id driver.CUlaunchAttributeID, v *driver.CUlaunchEvent) driver.CUresult {
	c := w.fn.module.ctx
	e, r := c.sim.event(v.Event)
	switch {
	case r != driver.CUDA_SUCCESS:
		return r
	case e.ctx != c:
		return driver.CUDA_ERROR_INVALID_HANDLE
	case v.Flags != 0, e.shared != nil, e.flags&driver.CU_EVENT_DISABLE_TIMING == 0:
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	data := driver.CUgraphEdgeData{FromPort: driver.CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER}
	if id == driver.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT {
		if c.sim.config.major < 9 {
			return driver.CUDA_ERROR_NOT_SUPPORTED
		}
		data.Type = driver.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
		if v.TriggerAtBlockStart == 0 {
			data.FromPort = driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
		}
	}
	w.records = append(w.records, launchRecord{e, data})
	return driver.CUDA_SUCCESS
}

// recordsOf returns what a launch records besides its work.
func recordsOf(w work) []launchRecord {
	if k, ok := w.(*kernelWork); ok {
		return k.records
	}
	return nil
}

// captureEvents makes the events of a captured launch mark its node, which does
// not have them: it runs without.
//
// Preconditions: simulator.graphMu must be locked.
func captureEvents(c *capture, n *node) {
	k, ok := n.work.(*kernelWork)
	if !ok {
		return
	}
	for _, rec := range k.records {
		rec.event.set(&record{capture: c, nodes: []*node{n}, early: map[*node]driver.CUgraphEdgeData{n: rec.data}})
	}
	k.records = nil
}
