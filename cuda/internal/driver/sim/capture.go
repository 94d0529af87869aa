// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var captureCount atomic.Uint64

// capture is a sequence of operations that become a graph. Guarded by
// simulator.graphMu, except for what is immutable.
type capture struct {
	id          uint64
	mode        driver.CUstreamCaptureMode
	tid         int // the thread that began it
	origin      *stream
	graph       *graph
	streams     map[*stream]struct{}
	invalidated bool
	ended       bool
}

func (c *capture) status() driver.CUstreamCaptureStatus {
	if c.invalidated {
		return driver.CU_STREAM_CAPTURE_STATUS_INVALIDATED
	}
	return driver.CU_STREAM_CAPTURE_STATUS_ACTIVE
}

// join makes a stream part of the capture.
//
// Preconditions: simulator.graphMu must be locked, as for all that follow.
func (c *capture) join(s *stream, front []*node, early map[*node]driver.CUgraphEdgeData) {
	c.streams[s] = struct{}{}
	s.front, s.early, s.own = slices.Clone(front), maps.Clone(early), nil
	s.capture.Store(c)
}

// leave takes all streams out of the capture.
func (c *capture) leave(d *simulator) {
	for s := range c.streams {
		s.capture.Store(nil)
		s.front, s.early, s.own = nil, nil, nil
	}
	c.ended = true
	c.graph.capture = nil
	delete(d.captures, c)
	d.capturing.Add(-1)
}

// capturedNode adds a node for an operation in a capturing stream.
func (d *simulator) capturedNode(s *stream, w work, kind driver.CUgraphNodeType) (*node, driver.CUresult) {
	c := s.capture.Load()
	if c == nil || c.invalidated {
		return nil, driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
	}
	early := s.startsEarly(w)
	n := d.addNode(c.graph, &node{kind: kind, work: w}, s.front)
	if early {
		n.setData(s.front[0], driver.CUgraphEdgeData{
			FromPort: driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, Type: driver.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
		})
	}
	for _, b := range n.before.All() {
		if data, ok := s.early[b]; ok && keepsEarly(kind, data) {
			// Anything else waits for all of b, which is always allowed.
			n.setData(b, data)
		}
	}
	s.front, s.early, s.own = []*node{n}, nil, n
	return n, driver.CUDA_SUCCESS
}

// keepsEarly reports whether the edge to a captured node says what the stream
// waited for. Programmatic edges are documented for kernels alone, and
// CuGraphAddDependencies makes no others; but a captured fill has one on an H200,
// driver 580.159. It waits for all of the kernel here.
func keepsEarly(kind driver.CUgraphNodeType, data driver.CUgraphEdgeData) bool {
	return kind == driver.CU_GRAPH_NODE_TYPE_KERNEL ||
		kind == driver.CU_GRAPH_NODE_TYPE_MEMSET && data.Type == driver.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
}

// startsEarly reports whether captured work need not wait for the end of the
// kernel before it: programmatic stream serialization becomes a programmatic
// edge. Work of other streams that s waits for comes first as a whole.
func (s *stream) startsEarly(w work) bool {
	k, ok := w.(*kernelWork)
	return ok && k.programmatic && len(s.front) == 1 && s.front[0] == s.own && s.own.kind == driver.CU_GRAPH_NODE_TYPE_KERNEL
}

// captureWork records work if the stream captures. Otherwise it checks the
// rules of the default stream and leaves the work to the caller.
func (d *simulator) captureWork(s *stream, w work, kind driver.CUgraphNodeType) (captured bool, r driver.CUresult) {
	if s.capture.Load() == nil {
		r = d.implicitCapture(s)
		return r != driver.CUDA_SUCCESS, r
	}
	if k, ok := w.(*kernelWork); ok {
		k.recycled = false // the node keeps it
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	c := s.capture.Load()
	if c == nil { // another thread has ended it meanwhile
		return false, driver.CUDA_SUCCESS
	}
	n, r := d.capturedNode(s, w, kind)
	if r == driver.CUDA_SUCCESS {
		captureEvents(c, n)
	}
	return true, r
}

// submit queues work, or records it if the stream captures.
func (d *simulator) submit(s *stream, w work, kind driver.CUgraphNodeType) driver.CUresult {
	if captured, r := d.captureWork(s, w, kind); captured {
		return r
	}
	d.behindGraphs()
	s.awaitRoom(false)
	records := recordsOf(w) // before w runs
	p := s.enqueue(w)
	for _, rec := range records {
		rec.event.set(&record{point: p})
	}
	return driver.CUDA_SUCCESS
}

// captureRecord makes an event mark what a capturing stream recorded so far.
func (d *simulator) captureRecord(s *stream, e *event) (captured bool, r driver.CUresult) {
	if s.capture.Load() == nil {
		r = d.implicitCapture(s)
		return r != driver.CUDA_SUCCESS, r
	}
	if e.shared != nil {
		return true, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	c := s.capture.Load()
	switch {
	case c == nil: // another thread has ended it meanwhile
		return false, driver.CUDA_SUCCESS
	case c.invalidated:
		return true, driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
	}
	e.set(&record{capture: c, nodes: slices.Clone(s.front), early: maps.Clone(s.early)})
	return true, driver.CUDA_SUCCESS
}

// captureWait applies the rules of waiting where stream or event belong to a
// capture.
func (d *simulator) captureWait(s *stream, e *event, external bool) (captured bool, r driver.CUresult) {
	rec := e.get()
	if s.capture.Load() == nil && (rec == nil || rec.capture == nil) {
		r = d.implicitCapture(s)
		return r != driver.CUDA_SUCCESS, r
	}
	if e.shared != nil {
		return true, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	var theirs *capture
	if rec != nil {
		theirs = rec.capture
	}
	if ours := s.capture.Load(); ours != nil {
		return true, d.waitInCapture(s, e, rec, external)
	}
	switch {
	case theirs == nil: // another thread has ended ours meanwhile
		return false, driver.CUDA_SUCCESS
	case theirs.ended:
		return true, driver.CUDA_ERROR_STREAM_CAPTURE_ISOLATION
	case theirs.invalidated:
		return true, driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
	case s.isLegacy:
		theirs.invalidated = true
		return true, driver.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
	}
	theirs.join(s, rec.nodes, rec.early)
	return true, driver.CUDA_SUCCESS
}

// waitInCapture is a wait of a stream that captures.
func (d *simulator) waitInCapture(s *stream, e *event, rec *record, external bool) driver.CUresult {
	c := s.capture.Load()
	if c.invalidated {
		return driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
	}
	if external {
		_, r := d.capturedNode(s, &eventWaitWork{e}, driver.CU_GRAPH_NODE_TYPE_WAIT_EVENT)
		return r
	}
	if rec == nil || rec.capture == nil || rec.capture.ended {
		c.invalidated = true
		return driver.CUDA_ERROR_STREAM_CAPTURE_ISOLATION
	}
	if rec.capture != c {
		c.invalidated, rec.capture.invalidated = true, true
		return driver.CUDA_ERROR_STREAM_CAPTURE_MERGE
	}
	for _, n := range rec.nodes {
		s.waitFor(n, rec.early[n])
	}
	return driver.CUDA_SUCCESS
}

// waitFor makes what s captures next wait for what data says of a node. Of two
// waits for one node the one that takes longer counts.
func (s *stream) waitFor(n *node, data driver.CUgraphEdgeData) {
	had, isEarly := s.early[n]
	switch isNew := !slices.Contains(s.front, n); {
	case isNew:
		s.front = append(slices.Clone(s.front), n)
	case !isEarly || data.FromPort > had.FromPort:
		return // a block has begun before it triggers anything, and before it is complete
	}
	if data == (driver.CUgraphEdgeData{}) {
		delete(s.early, n)
		return
	}
	if s.early == nil {
		s.early = map[*node]driver.CUgraphEdgeData{}
	}
	s.early[n] = data
}

func (d *simulator) CuStreamBeginCapture(h driver.CUstream, mode driver.CUstreamCaptureMode) driver.CUresult {
	if mode < driver.CU_STREAM_CAPTURE_MODE_GLOBAL || mode > driver.CU_STREAM_CAPTURE_MODE_RELAXED {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if s.isLegacy {
		return driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
	}
	d.enterCapture(s, &beginsCapture)
	defer d.leaveCapture(s)
	d.behindLaunches()
	tid, _, _ := d.threadState()
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	if s.capture.Load() != nil {
		return driver.CUDA_ERROR_ILLEGAL_STATE
	}
	c := &capture{
		id: captureCount.Add(1), mode: mode, tid: tid, origin: s,
		graph: d.newGraph(), streams: map[*stream]struct{}{},
	}
	c.graph.capture = c
	d.captures[c] = struct{}{}
	d.capturing.Add(1)
	c.join(s, nil, nil)
	return r
}

func (d *simulator) CuStreamEndCapture(h driver.CUstream) (driver.CUgraph, driver.CUresult) {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	d.enterCapture(s, &endsCapture)
	defer d.leaveCapture(s)
	tid, _, _ := d.threadState()
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	c := s.capture.Load()
	if c == nil {
		return 0, driver.CUDA_ERROR_ILLEGAL_STATE
	}
	if s != c.origin {
		c.invalidated = true
		return 0, driver.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
	}
	if c.mode != driver.CU_STREAM_CAPTURE_MODE_RELAXED && tid != c.tid {
		// It is over all the same: seen on an H200, driver 580.159.
		c.leave(d)
		d.destroyGraph(c.graph)
		return 0, driver.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
	}
	joined := c.isJoined()
	invalidated := c.invalidated
	c.leave(d)
	switch {
	case invalidated:
		r = driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
	case !joined:
		r = driver.CUDA_ERROR_STREAM_CAPTURE_UNJOINED
	}
	if r != driver.CUDA_SUCCESS {
		d.destroyGraph(c.graph)
		return 0, r
	}
	return c.graph.handle, r
}

// isJoined reports whether the origin depends on all that other streams did. What
// depends on no more than the begin of a kernel does not count. A programmatic
// dependency does, although it is not on the kernel's completion: that was seen on
// an H200, driver 580.159.
func (c *capture) isJoined() bool {
	joins := func(data driver.CUgraphEdgeData) bool {
		return data.FromPort == 0 || data.Type == driver.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
	}
	seen := map[*node]bool{}
	todo := slices.DeleteFunc(slices.Clone(c.origin.front), func(n *node) bool { return !joins(c.origin.early[n]) })
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[n] {
			seen[n] = true
			for _, b := range n.before.All() {
				if joins(n.data[b]) {
					todo = append(todo, b)
				}
			}
		}
	}
	for s := range c.streams {
		for _, n := range s.front {
			if !seen[n] {
				return false
			}
		}
	}
	return true
}

func (d *simulator) CuStreamIsCapturing(h driver.CUstream) (driver.CUstreamCaptureStatus, driver.CUresult) {
	info, r := d.captureInfo(h, false)
	return info.Status, r
}

func (d *simulator) CuStreamGetCaptureInfo(h driver.CUstream, deps bool) (driver.CaptureInfo, driver.CUresult) {
	if s, r := d.stream(h); r == driver.CUDA_SUCCESS {
		defer d.enterAsk(s)()
	}
	return d.captureInfo(h, deps)
}

func (d *simulator) captureInfo(h driver.CUstream, deps bool) (driver.CaptureInfo, driver.CUresult) {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS || d.capturing.Load() == 0 {
		return driver.CaptureInfo{}, r
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	c := s.capture.Load()
	if c == nil {
		if s.isLegacy && len(d.implicitCaptures(s)) > 0 {
			return driver.CaptureInfo{}, driver.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
		}
		return driver.CaptureInfo{}, r
	}
	info := driver.CaptureInfo{Status: c.status(), ID: c.id}
	if !c.invalidated {
		info.Graph = c.graph.handle
		if deps {
			info.Deps = handles(s.front)
		}
	}
	return info, r
}

// CuStreamUpdateCaptureDependencies changes nothing if it fails, and does not
// invalidate the capture.
func (d *simulator) CuStreamUpdateCaptureDependencies(h driver.CUstream, list []driver.CUgraphNode, flags uint32) driver.CUresult {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if flags > driver.CU_STREAM_SET_CAPTURE_DEPENDENCIES {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	c := s.capture.Load()
	switch {
	case c == nil:
		return driver.CUDA_ERROR_ILLEGAL_STATE
	case c.invalidated:
		return driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
	}
	nodes, r := d.members(c.graph, list)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if flags == driver.CU_STREAM_SET_CAPTURE_DEPENDENCIES {
		s.front, s.early, s.own = nil, nil, nil
	}
	for _, n := range nodes {
		s.waitFor(n, driver.CUgraphEdgeData{})
	}
	return r
}
