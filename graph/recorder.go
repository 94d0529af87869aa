// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import "github.com/cudago/cudago/cuda"

// A Recorder makes captured calls of its own in the stream of a [Capture], and
// writes down what they have added. So many small calls do not all have to come
// here; see [Capture.RecordBy].
//
// The capture stops its recorder whenever it does something itself, so that the
// two never are in the driver's graph at once, which the driver does not
// synchronize.
type Recorder interface {
	// Stop keeps the recorder from recording, and waits for a call under way.
	Stop()
	// Resume lets it record again. After the Stop at the capture's end it is not
	// called.
	Resume()
	// Leave is asked at the end, if the captured graph has these nodes and no
	// others, and each waits for the one before and for nothing else. If they are
	// what was recorded, in that order, the recorder may keep all of it and return
	// true. The graph then has no nodes until its owner gives them to
	// [Graph.Adopt], before he does anything else with the graph: most captured
	// graphs are never asked for a node.
	Leave(nodes []cuda.NodeHandle) bool
	// Take is called at the end otherwise. It returns what was recorded, of which
	// the capture takes over the operands. A node's Handle is 0 if it is not known.
	// After is not used.
	Take() []Added
}

// RecordBy gives c a recorder, once, before anything was recorded.
//
// Operands that it records must not be memory of an open capture.
func (c *Capture) RecordBy(r Recorder) {
	c.lock()
	defer c.unlock()
	c.holdGreenContext(c.stream)
	r.Stop()
	c.recorder = r
}

// lock keeps everybody else out of the capture, its recorder too.
func (c *Capture) lock() {
	c.mu.Lock()
	if !c.ended && c.recorder != nil {
		c.recorder.Stop()
	}
}

// unlock undoes lock.
func (c *Capture) unlock() {
	if !c.ended && c.recorder != nil {
		c.recorder.Resume()
	}
	c.mu.Unlock()
}

// take learns what the recorder has recorded. The capture has ended.
//
// Preconditions: c.mu is held.
func (c *Capture) take() {
	if c.recorder != nil {
		c.added = c.recorder.Take()
		c.recorder = nil
	}
}

// leave leaves the nodes of the captured graph to the recorder, if it may.
//
// Preconditions: c.mu is held.
func (c *Capture) leave(nodes []cuda.NodeHandle, edges cuda.Edges) bool {
	if c.recorder == nil || len(c.recorded) > 0 || !isChain(nodes, edges) || !c.recorder.Leave(nodes) {
		return false
	}
	c.recorder = nil
	return true
}

// isChain reports whether each node waits for the one before and for nothing else,
// as far as edges come in order.
func isChain(nodes []cuda.NodeHandle, edges cuda.Edges) bool {
	if len(edges.To) != max(len(nodes)-1, 0) {
		return false
	}
	for i := range edges.To {
		if edges.From[i] != nodes[i] || edges.To[i] != nodes[i+1] || edges.Data[i] != (cuda.EdgeData{}) {
			return false
		}
	}
	return true
}
