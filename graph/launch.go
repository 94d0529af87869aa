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

// eachParams calls f with the parameters of the nodes of x, and of those inside
// them, which have paths.
func (x *Exec) eachParams(f func(path string, params any)) {
	for _, n := range x.Nodes() {
		f(n.name, n.Params())
		if n.child != nil {
			n.child.eachParams(n.name+"/", f)
		}
	}
}

// eachParams is that of what is inside a node of an executable.
func (g *Graph) eachParams(prefix string, f func(path string, params any)) {
	for _, n := range g.all() {
		f(prefix+n.name, n.params)
		if n.child != nil {
			n.child.eachParams(prefix+n.name+"/", f)
		}
	}
}

// Unfreed names the alloc nodes whose memory is allocated now, from an earlier
// launch: the reason why a launch without [cuda.InstantiateAutoFree] fails.
func (x *Exec) Unfreed() []string {
	var names []string
	x.eachParams(func(path string, params any) {
		p, ok := params.(AllocParams)
		if !ok {
			return
		}
		if allocated, err := x.h.ctx.IsAllocated(p.Ptr); err == nil && allocated {
			names = append(names, path)
		}
	})
	return names
}

// Unallocated names the free nodes whose memory is not allocated now, nor by x: the
// reason why a launch fails.
func (x *Exec) Unallocated() []string {
	own := make(map[uint64]bool)
	x.eachParams(func(_ string, params any) {
		if p, ok := params.(AllocParams); ok {
			own[p.Ptr] = true
		}
	})
	var names []string
	x.eachParams(func(path string, params any) {
		p, ok := params.(FreeParams)
		if !ok || own[p.Ptr] {
			return
		}
		if allocated, err := x.h.ctx.IsAllocated(p.Ptr); err == nil && !allocated {
			names = append(names, path)
		}
	})
	return names
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
