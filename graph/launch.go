// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"slices"

	"github.com/cudago/cudago/cuda"
)

var errClosedExec = &cuda.ClosedError{What: "graph executable"}

// errCapturing: on CUDA 13 drivers cuGraphLaunch into a capturing stream fails
// and invalidates the capture, so it is refused before the driver sees it.
var errCapturing = errors.New("a graph executable cannot be launched into a stream that is capturing; " +
	"capture it instead, with Exec.Capture")

// Launch launches x on s. It calls cuGraphLaunch.
//
// Stream-ordered on s, and after earlier launches of x; returns before
// completion, but blocks while the driver's queue is full: not with the GIL. Not
// allowed while s is capturing: see [Exec.Capture].
//
// Errors: [cuda.ErrClosed] if x or s is closed; otherwise an [*cuda.Error].
func (x *Exec) Launch(s *cuda.Stream) error {
	return x.enqueue(s, true, func() error { return x.h.ctx.ExecLaunch(x.handle, s) })
}

// Upload prepares x on the device, so that its first launch is as fast as later
// ones. It calls cuGraphUpload.
//
// Stream-ordered on s; returns before completion, and blocks as Launch does.
func (x *Exec) Upload(s *cuda.Stream) error {
	return x.enqueue(s, false, func() error { return x.h.ctx.ExecUpload(x.handle, s) })
}

// enqueue makes a driver call that puts work of x in s, and notes where.
func (x *Exec) enqueue(s *cuda.Stream, launch bool, call func() error) error {
	// For the whole call: s may be the per-thread default stream.
	leave, err := s.Context().Enter()
	if err != nil {
		return err
	}
	defer leave()
	if st, err := s.IsCapturing(); err != nil {
		return err
	} else if st != cuda.CaptureNone {
		return errCapturing
	}
	l := LineOf(s)
	var event *cuda.Event
	if l.shared {
		// First, so that a launch never lacks its event.
		if event, err = s.Context().TakeEvent(true); err != nil {
			return err
		}
	}
	x.gate.enter()
	defer x.gate.leave()
	if err = x.start(launch); err == nil {
		x.launching.Lock()
		err = call()
		x.launching.Unlock()
	}
	// Also if the driver call failed: the launch may have begun.
	switch {
	case errors.Is(err, cuda.ErrClosed): // nothing has begun
		if event != nil {
			s.Context().PutEvent(event)
		}
	case l.shared:
		pos, unmarked := l.markedBy(event, true)
		x.note(Use{l, pos})
		if err == nil && !errors.Is(unmarked, ErrLineCapturing) {
			err = unmarked // otherwise a capture has begun since; a later mark covers the launch
		}
	default:
		x.note(Use{l, l.Advance()})
	}
	return err
}

// A memoryNode is a node that allocates or frees.
type memoryNode struct {
	path string // also through what it is inside of
	ptr  uint64
}

// memoryNodes lists the nodes of x that allocate, those that free what x does not
// allocate, and those inside of others.
func (x *Exec) memoryNodes() (allocs, frees []memoryNode) {
	for _, n := range x.Nodes() {
		switch n.kind {
		case cuda.AllocNode, cuda.FreeNode:
			addMemory(n.name, n.Params(), &allocs, &frees)
		}
		if n.child != nil {
			n.child.addMemoryNodes(n.name+"/", &allocs, &frees)
		}
	}
	own := make(map[uint64]bool, len(allocs))
	for _, n := range allocs {
		own[n.ptr] = true
	}
	return allocs, slices.DeleteFunc(frees, func(n memoryNode) bool { return own[n.ptr] })
}

// addMemoryNodes adds those of what is inside a node of an executable.
func (g *Graph) addMemoryNodes(prefix string, allocs, frees *[]memoryNode) {
	for _, n := range g.all() {
		addMemory(prefix+n.name, n.params, allocs, frees)
		if n.child != nil {
			n.child.addMemoryNodes(prefix+n.name+"/", allocs, frees)
		}
	}
}

func addMemory(path string, params any, allocs, frees *[]memoryNode) {
	switch p := params.(type) {
	case AllocParams:
		*allocs = append(*allocs, memoryNode{path, p.Ptr})
	case FreeParams:
		*frees = append(*frees, memoryNode{path, p.Ptr})
	}
}

// Unfreed names the alloc nodes whose memory is allocated now, from an earlier
// launch: the reason why a launch without [cuda.InstantiateAutoFree] fails.
func (x *Exec) Unfreed() []string {
	allocs, _ := x.memoryNodes()
	return x.namesOf(allocs, true)
}

// Unallocated names the free nodes whose memory is not allocated now, nor by x: the
// reason why a launch fails.
func (x *Exec) Unallocated() []string {
	_, frees := x.memoryNodes()
	return x.namesOf(frees, false)
}

// namesOf names those of the nodes whose memory is allocated now, or is not.
func (x *Exec) namesOf(nodes []memoryNode, allocated bool) []string {
	var names []string
	for _, n := range nodes {
		if is, err := x.h.ctx.IsAllocated(n.ptr); err == nil && is == allocated {
			names = append(names, n.path)
		}
	}
	return names
}

// Frees lists the memory that a launch of x frees, and that x does not allocate.
func (x *Exec) Frees() []uint64 {
	_, frees := x.memoryNodes()
	list := make([]uint64, len(frees))
	for i, n := range frees {
		list[i] = n.ptr
	}
	return list
}

// start counts a launch, before it enters the driver, and fails once x is
// closed.
//
// Preconditions: x.gate is entered.
func (x *Exec) start(launch bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return errClosedExec
	}
	if launch {
		x.launches++
	}
	return nil
}

// note adds a use, and forgets those that have ended.
func (x *Exec) note(u Use) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.uses {
		if x.uses[i].Line == u.Line {
			x.uses[i].Pos = max(x.uses[i].Pos, u.Pos)
			return
		}
	}
	x.uses = append(slices.DeleteFunc(x.uses, func(u Use) bool { return !u.Pending() }), u)
}

// started returns how many launches were started so far, or unknown if launches
// by handle are not counted.
//
// Preconditions: x.gate is shut; x.mu is held.
func (x *Exec) started() uint64 {
	switch {
	case x.o.Launches != nil:
		return x.launches + x.o.Launches()
	case x.o.Uses != nil:
		return unknown
	}
	return x.launches
}

// unknown is a count of launches that equals no other.
const unknown = ^uint64(0)
