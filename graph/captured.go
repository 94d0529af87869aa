// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda"
)

// A CapturedMemory is what an alloc node of a capture allocates: see
// [Capture.Alloc]. It keeps the address reserved until it is released, after the
// capture has become a graph; if there is no graph, the address ends with the
// capture. Until then only operations of that capture can use the memory.
type CapturedMemory struct {
	allocation allocation
	size       uint64
	c          *Capture
	stream     *cuda.Stream
	onEnd      func(isGraph bool)

	last map[streamID]cuda.NodeHandle // guarded by c.mu; the latest captured use in each stream, 0 if its node is not known

	mu       sync.Mutex // a leaf, below all others
	state    capturedState
	h        *hierarchy // guarded by mu; held, if the state is inGraph
	released bool       // guarded by mu
}

type capturedState int32 // guarded by CapturedMemory.mu

const (
	inCapture capturedState = iota // the capture is open
	inGraph                        // it has become a graph
	inNothing                      // it has become none
)

// Ptr returns the address, which all launches will use.
func (m *CapturedMemory) Ptr() uint64 { return m.allocation.ptr }

func (m *CapturedMemory) node() *allocation { return &m.allocation }

// Stream returns the stream in which the memory was allocated.
func (m *CapturedMemory) Stream() *cuda.Stream { return m.stream }

// Capture returns the capture that the memory belongs to.
func (m *CapturedMemory) Capture() *Capture { return m.c }

// Release implements [Retainer].
func (m *CapturedMemory) Release() {
	m.mu.Lock()
	if m.released {
		panic("BUG: captured memory was released twice")
	}
	m.released = true
	h := m.h
	m.mu.Unlock()
	if h == nil {
		return
	}
	if err := h.drop(); err != nil {
		warn(err)
	}
}

// end notes what has become of the capture: the graph that h is of, or none.
//
// Preconditions: m.c.mu is held, and h.mu unless h is nil.
func (m *CapturedMemory) end(h *hierarchy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = inNothing
	if h != nil {
		m.state = inGraph
		m.allocation.h.Store(h)
	}
	if m.released {
		return
	}
	if h != nil {
		h.holders++
		m.h = h
	}
	if m.onEnd != nil {
		m.onEnd(h != nil)
	}
}

// usable returns why an operation of c cannot use m, or nil; c is nil for a node
// that is not captured.
//
// Preconditions: c.mu is held, unless c is nil.
func (m *CapturedMemory) usable(c *Capture) error {
	m.mu.Lock()
	state := m.state
	m.mu.Unlock()
	switch {
	case state == inNothing:
		return &cuda.ClosedError{What: "memory of a capture that became no graph"}
	case state == inGraph:
		return nil
	case m.c != c:
		return badValue("memory", "of a capture that is still open can be used in that capture only")
	case m.allocation.freed.Load():
		return &cuda.ClosedError{What: "memory that this capture has freed"}
	}
	return nil
}

// mayUse returns why an operation of c cannot use what b has, or nil: see
// [CapturedMemory.usable].
func (b *bundle) mayUse(c *Capture) error {
	if b == nil {
		return nil
	}
	for i := range b.operands {
		if m := b.operands[i].Memory; m != nil {
			if err := m.usable(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteUses notes that a captured node, or 0, uses the memory of its operands.
//
// Preconditions: c.mu is held.
func (c *Capture) noteUses(s *cuda.Stream, n cuda.NodeHandle, b *bundle) {
	if b == nil {
		return
	}
	for i := range b.operands {
		if m := b.operands[i].Memory; m != nil && m.c == c {
			m.last[streamOf(s)] = n
		}
	}
}

// Alloc runs call, which allocates size bytes by one driver call on s, and makes
// the memory the captured graph's: a node allocates it at each launch, always at
// the same address, as one of [Graph.Alloc] does. site is the node's [Node.Site]. onEnd, if not nil, is called
// once when the capture has ended, unless the memory was released before: with
// locks held, so it must not call back, nor wait.
//
// Lifetime: the caller must Release the memory.
func (c *Capture) Alloc(s *cuda.Stream, size uint64, site uint32, onEnd func(isGraph bool), call func() (ptr uint64, err error)) (*CapturedMemory, error) {
	m := &CapturedMemory{size: size, c: c, stream: s, onEnd: onEnd, last: make(map[streamID]cuda.NodeHandle)}
	c.lock()
	defer c.unlock()
	op := Operation{memory: &m.allocation, Site: site}
	_, err := c.recordLocked(s, &op, nil, func() (err error) {
		m.allocation.ptr, err = call()
		op.Params = AllocParams{m.Ptr(), size, s.Context().Device().Ordinal(), UnknownPeers}
		return err
	})
	if err != nil {
		return nil, err
	}
	c.memory = append(c.memory, m)
	return m, nil
}

// Free captures a free of m, in s or, if s is nil, in the stream of its
// allocation; once that has been joined, in the stream of c. It comes after
// everything in the capture that uses m, in whichever stream. It calls
// cuMemFreeAsync, and cuGraphAddDependencies for uses in other streams.
//
// Errors: [cuda.ErrClosed] if it was freed before; otherwise an [*cuda.Error].
func (c *Capture) Free(m *CapturedMemory, s *cuda.Stream, operands []Operand, site uint32) error {
	b := newBundle(operands)
	err := c.free(m, s, b, site)
	if err != nil {
		b.release()
	}
	return err
}

func (c *Capture) free(m *CapturedMemory, s *cuda.Stream, b *bundle, site uint32) error {
	c.lock()
	defer c.unlock()
	if err := m.usable(c); err != nil {
		return err
	}
	if s == nil {
		s = m.stream
		if joined, err := c.isJoined(s); err != nil {
			return err
		} else if joined { // nobody would join it again
			s = c.stream
		}
	}
	var before []cuda.NodeHandle
	n, err := c.recordLocked(s, &Operation{Params: FreeParams{m.Ptr()}, Site: site}, b, func() error {
		info, err := s.CaptureInfo()
		if err != nil {
			return err
		}
		before = info.Dependencies
		return s.Context().FreeAsync(m.Ptr(), s)
	})
	if err != nil {
		return err
	}
	m.allocation.freed.Store(true)
	// The call cannot be undone, so a free that comes too early must not become
	// a graph.
	c.spoiled = errors.Join(c.spoiled, c.orderFree(m, s, n, before))
	return nil
}

// isJoined reports whether the stream of c waits for all that s, another stream,
// has in the capture.
//
// Preconditions: c.mu is held.
func (c *Capture) isJoined(s *cuda.Stream) (bool, error) {
	if s == c.stream || c.ended {
		return false, nil
	}
	theirs, err := s.CaptureInfo()
	if err != nil {
		return false, err
	}
	ours, err := c.stream.CaptureInfo()
	if err != nil || ours.Status != cuda.CaptureActive {
		return false, err
	}
	edges, err := s.Context().GraphEdges(ours.Graph)
	if err != nil {
		return false, err
	}
	before := edges.Completed()
	seen := make(map[cuda.NodeHandle]bool, len(before))
	for todo := slices.Clone(ours.Dependencies); len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[n] {
			seen[n] = true
			todo = append(todo, before[n]...)
		}
	}
	return !slices.ContainsFunc(theirs.Dependencies, func(n cuda.NodeHandle) bool { return !seen[n] }), nil
}

// orderFree makes the free node n of s come after the uses of m in other streams.
// n is 0 if it is not known.
//
// Preconditions: c.mu is held.
func (c *Capture) orderFree(m *CapturedMemory, s *cuda.Stream, n cuda.NodeHandle, before []cuda.NodeHandle) error {
	var from []cuda.NodeHandle
	for in, use := range m.last {
		if in == streamOf(s) || slices.Contains(before, use) || slices.Contains(from, use) {
			continue
		}
		if use == 0 {
			return badValue("capture", "must tell which node uses memory that another stream frees, and did not")
		}
		from = append(from, use)
	}
	if len(from) == 0 {
		return nil
	}
	if n == 0 {
		return badValue("capture", "must tell which node frees memory that several streams use, and did not")
	}
	slices.Sort(from)
	of, err := c.identify()
	if err != nil {
		return err
	}
	return s.Context().AddDependencies(of.graph, from, slices.Repeat([]cuda.NodeHandle{n}, len(from)), make([]cuda.EdgeData, len(from)))
}

// endMemory tells the memory of c what has become of it.
//
// Preconditions: c.mu is held, and h.mu unless h is nil.
func (c *Capture) endMemory(h *hierarchy) {
	for _, m := range c.memory {
		m.end(h)
		if h != nil {
			h.remember(m.Ptr(), h.ctx)
		}
	}
	c.memory = nil
}
