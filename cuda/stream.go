// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A Stream is a queue of device work that runs in order. Work in different
// streams runs in any order, or at once, unless an [Event] orders it.
//
// # Lifetime
//
// Close a stream made by [Context.NewStream] when done; work already queued
// still completes. A closed stream whose handle is still in use, by a call that
// blocks in another goroutine or by a [Buffer] that will be freed on it, is
// destroyed by its last user. Close never waits.
//
// # Concurrency
//
// Safe for concurrent use. Work enqueued by different goroutines runs in the
// order in which their calls reached the driver.
//
// # Errors
//
// Device work fails after the call that enqueued it has returned. A later call
// on any stream of the device reports the error, most often Synchronize;
// [Result.Sticky] identifies such errors.
type Stream struct {
	ctx  *Context
	h    driver.CUstream // immutable
	kind streamKind      // immutable
	name string          // immutable
	like streamLike      // immutable; of an ownStream
	uses uses

	exposed atomic.Bool // others have the handle

	begun     begunCaptures
	companion companion
}

// streamKind says who owns a stream's handle.
type streamKind uint8

const (
	ownStream     streamKind = iota // we created it and destroy it
	foreignStream                   // another library's
	defaultStream                   // the driver's; cannot be closed
)

// StreamOptions are the options of [Context.NewStream]. The zero value is a
// non-blocking stream of the least priority.
type StreamOptions struct {
	// Priority orders streams that compete for the device: lower numbers go
	// first. [Context.StreamPriorityRange] returns the range; the driver clamps
	// other values.
	Priority int
	// Blocking makes the stream and the legacy default stream wait for each
	// other's work.
	Blocking bool
	// Name appears in error messages. It need not be unique.
	Name string
}

// NewStream creates a stream. It calls cuStreamCreateWithPriority, unless a
// stream of the same kind was closed whose handle others know: see
// [Stream.Expose]. Then it returns that stream anew, if it is idle.
//
// Lifetime: the caller must Close it.
//
// Errors: an [*Error].
func (c *Context) NewStream(o StreamOptions) (*Stream, error) {
	flags := driver.CU_STREAM_NON_BLOCKING
	if o.Blocking {
		flags = driver.CU_STREAM_DEFAULT
	}
	leave, err := c.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	like := streamLike{flags: flags, priority: clampInt32(o.Priority)}
	h, again := c.parked.take(like, c.isIdle)
	if !again {
		var r driver.CUresult
		h, r = c.drv.api.CuStreamCreateWithPriority(like.flags, like.priority)
		if err := c.check("cuStreamCreateWithPriority", r); err != nil {
			return nil, err
		}
	}
	c.drv.live.streams.Add(1)
	s := &Stream{ctx: c, h: h, name: o.Name, like: like}
	s.exposed.Store(again)
	return s, nil
}

// clampInt32 converts a priority so that one outside the driver's range stays
// outside.
func clampInt32(v int) int32 { return int32(max(-1<<31, min(v, 1<<31-1))) }

// A DefaultStreamKind names one of the two default streams.
type DefaultStreamKind int

const (
	// Legacy is the stream of code that names none. It waits for all blocking
	// streams of the context, and they for it. It cannot be captured.
	Legacy DefaultStreamKind = iota
	// PerThread is a stream of the calling OS thread. Goroutines move between
	// threads: use runtime.LockOSThread to get the same stream twice.
	PerThread
)

// DefaultStream returns a default stream, the same pointer each time. Close
// does nothing to it.
func (c *Context) DefaultStream(kind DefaultStreamKind) *Stream {
	if kind == PerThread {
		return c.perThread
	}
	return c.legacy
}

// WrapStream returns a Stream for a CUstream that another library owns. The
// handle must belong to c; that is not checked. Handles 0 and 1 are the legacy
// and 2 the per-thread default stream.
//
// Lifetime: the caller must keep the handle valid until the Stream and all that
// was allocated on it are closed. Close does not destroy the handle.
func (c *Context) WrapStream(handle uintptr) *Stream {
	switch driver.CUstream(handle) {
	case 0, driver.CU_STREAM_LEGACY:
		return c.legacy
	case driver.CU_STREAM_PER_THREAD:
		return c.perThread
	}
	return &Stream{ctx: c, h: driver.CUstream(handle), kind: foreignStream}
}

// Handle returns the CUstream. It stays the same after Close, but must not be
// used then; [Stream.Use] is the safe way.
func (s *Stream) Handle() uintptr { return uintptr(s.h) }

// Context returns the context that s belongs to.
func (s *Stream) Context() *Context { return s.ctx }

// Device returns the device that s belongs to.
func (s *Stream) Device() *Device { return s.ctx.dev }

// Name returns the name from [StreamOptions], or what kind of default stream s
// is.
func (s *Stream) Name() string { return s.name }

// IsForeign reports whether the handle belongs to another library.
func (s *Stream) IsForeign() bool { return s.kind == foreignStream }

// IsDefault reports whether s is one of the two default streams.
func (s *Stream) IsDefault() bool { return s.kind == defaultStream }

// String returns `stream "upload"`, or "stream 0x55d0c8".
func (s *Stream) String() string {
	switch {
	case s.kind == defaultStream:
		return s.name + " stream"
	case s.name != "":
		return fmt.Sprintf("stream %q", s.name)
	}
	return fmt.Sprintf("stream %#x", uintptr(s.h))
}

// Use returns the handle for calls made outside this package and keeps it valid
// until done, which must be called exactly once. Close does not wait for done.
//
// Errors: [ErrClosed] after Close.
func (s *Stream) Use() (handle uintptr, done func(), err error) {
	if err := s.begin(); err != nil {
		return 0, nil, err
	}
	return uintptr(s.h), s.end, nil
}

func (s *Stream) begin() error {
	if s.ctx.IsLost() {
		return s.ctx.lostError(s.String())
	}
	if !s.uses.begin() {
		return &ClosedError{s.String()}
	}
	return nil
}

func (s *Stream) end() {
	if s.uses.end() {
		s.destroy()
	}
}

// enter takes a use of s and makes its context current; leave undoes both.
func (s *Stream) enter() (leave func(), err error) {
	if err := s.begin(); err != nil {
		s.ctx.forgetCapture(s)
		return nil, err
	}
	restore, err := s.ctx.Enter()
	if err != nil {
		s.end()
		return nil, err
	}
	return func() { restore(); s.end() }, nil
}

// call runs one driver call with s in use and its context current.
func (s *Stream) call(op string, f func(driver.API) driver.CUresult) error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	return s.ctx.check(op, f(s.ctx.drv.api))
}

// Synchronize blocks until all work queued on s has completed. It calls
// cuStreamSynchronize.
//
// Concurrency: a Close on another goroutine does not end the wait.
//
// Errors: [ErrClosed] after Close; [ErrorStreamCaptureUnsupported] while s is
// capturing, which invalidates the capture; otherwise an [*Error], which may report
// a fault in work that was queued earlier.
func (s *Stream) Synchronize() error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	return s.ctx.waited("cuStreamSynchronize", s.ctx.drv.api.CuStreamSynchronize(s.h))
}

// Done reports whether all work queued on s has completed. It calls
// cuStreamQuery, and does not block.
//
// Errors: as for [Stream.Synchronize].
func (s *Stream) Done() (bool, error) {
	leave, err := s.enter()
	if err != nil {
		return false, err
	}
	defer leave()
	r := s.ctx.drv.api.CuStreamQuery(s.h)
	if r == driver.CUDA_ERROR_NOT_READY {
		return false, nil
	}
	err = s.ctx.waited("cuStreamQuery", r)
	return err == nil, err
}

// Wait makes work queued on s from now on wait for the latest record of e. An
// event that was never recorded counts as completed. It calls
// cuStreamWaitEvent.
//
// Stream-ordered on s; returns before completion. e may belong to another
// device and may be closed right after. While the stream that recorded e is
// capturing, s joins that capture.
//
// Errors: [ErrClosed] if s or e is closed; [ErrorStreamCaptureIsolation] if s
// is capturing and e was recorded outside the capture.
func (s *Stream) Wait(e *Event) error {
	_, err := s.waitUnless(e, s.ctx.drv.lockJoin, never)
	return err
}

// WaitUncaptured is [Stream.Wait], unless s is capturing: then it does nothing
// and reports false. No capture of this package begins in s between the check
// and the wait, which would invalidate it.
func (s *Stream) WaitUncaptured(e *Event) (waits bool, err error) {
	return s.waitUnless(e, s.ctx.drv.lockJoin, s.capturing)
}

// WaitUnlessJoining is [Stream.Wait], unless e was recorded in a capture that may
// be open, which s might join: then it does nothing and reports false.
func (s *Stream) WaitUnlessJoining(e *Event) (waits bool, err error) {
	return s.waitUnless(e, s.ctx.drv.lockJoin, func() (bool, error) {
		return e.recorded.underWay(&s.ctx.drv.open) || e.recorded.isForeign(), nil
	})
}

// TryWait is [Stream.Wait] for callers that must not wait for other threads: it
// does nothing and reports false while one records an event, begins a capture or
// ends one.
func (s *Stream) TryWait(e *Event) (waits bool, err error) {
	return s.waitUnless(e, s.ctx.drv.tryLockJoin, never)
}

func never() (bool, error) { return false, nil }

// waitUnless makes the call with the context current and the capture lock held,
// unless that cannot be had or refuse, called there, says otherwise.
func (s *Stream) waitUnless(e *Event, lock func() (unlock func()), refuse func() (bool, error)) (waits bool, err error) {
	if err := e.begin(); err != nil {
		return false, err
	}
	defer e.end()
	if err := e.ctx.hold(); err != nil { // its context may be another one than that of s
		return false, err
	}
	defer e.ctx.release()
	return s.waitFor(e.h, lock, refuse)
}

func (s *Stream) waitFor(e driver.CUevent, lock func() (unlock func()), refuse func() (bool, error)) (waits bool, err error) {
	leave, err := s.enter()
	if err != nil {
		return false, err
	}
	defer leave()
	unlock := lock()
	if unlock == nil {
		return false, nil
	}
	defer unlock()
	if refused, err := refuse(); err != nil || refused {
		return false, err
	}
	r := s.ctx.drv.api.CuStreamWaitEvent(s.h, e, 0)
	return r == driver.CUDA_SUCCESS, s.ctx.check("cuStreamWaitEvent", r)
}

// WaitHandle is [Stream.Wait] for an event of another library, by its handle, which
// the caller keeps valid. It may stand in any capture that is open.
func (s *Stream) WaitHandle(event uintptr) error {
	_, err := s.waitFor(driver.CUevent(event), s.ctx.drv.lockJoin, never)
	return err
}

// WaitHandleUnlessJoining is to [Stream.WaitHandle] what [Stream.WaitUnlessJoining] is
// to [Stream.Wait].
func (s *Stream) WaitHandleUnlessJoining(event uintptr) (waits bool, err error) {
	return s.waitFor(driver.CUevent(event), s.ctx.drv.lockJoin, func() (bool, error) { return s.ctx.drv.Capturing(), nil })
}

// TryWaitHandle is to [Stream.WaitHandle] what [Stream.TryWait] is to [Stream.Wait].
func (s *Stream) TryWaitHandle(event uintptr) (waits bool, err error) {
	return s.waitFor(driver.CUevent(event), s.ctx.drv.tryLockJoin, never)
}

// Record makes e mark all work queued on s so far. It replaces an earlier
// record of e; existing waits still wait for that one. It calls cuEventRecord.
//
// Stream-ordered on s; returns before completion. Captured as a dependency,
// without a node: a later Wait in the capture depends on the work before it.
//
// Errors: [ErrClosed] if s or e is closed; an [*ArgumentError] if they belong
// to different devices.
func (s *Stream) Record(e *Event) error {
	_, err := s.RecordCaptured(e)
	return err
}

// RecordCaptured is [Stream.Record], and reports whether s was capturing: then
// e stands for a place in a graph, and must not be queried.
func (s *Stream) RecordCaptured(e *Event) (captured bool, err error) {
	if e.ctx != s.ctx {
		return false, badValue("event", "must be of %v, as the stream is, got one of %v", s.ctx.dev, e.ctx.dev)
	}
	if err := e.begin(); err != nil {
		return false, err
	}
	defer e.end()
	leave, err := s.enter()
	if err != nil {
		return false, err
	}
	defer leave()
	s.ctx.drv.capture.RLock()
	defer s.ctx.drv.capture.RUnlock()
	note, err := s.noteOfRecord(e)
	if err != nil {
		return false, err
	}
	if err := s.ctx.check("cuEventRecord", s.ctx.drv.api.CuEventRecord(e.h, s.h)); err != nil {
		return false, err
	}
	if note != nil {
		note()
	}
	return note != nil, nil
}

// WhileRecording runs call, which makes one driver call that records events in s
// besides other work. It is to launches with such events what [Stream.Record] is
// to cuEventRecord, and reports like [Stream.RecordCaptured]. The events are
// kept open meanwhile.
//
// Errors: of call, as it is; otherwise as for [Stream.Record].
func (s *Stream) WhileRecording(events []*Event, call func() error) (captured bool, err error) {
	for _, e := range events {
		if e.ctx != s.ctx {
			return false, badValue("event", "must be of %v, as the stream is, got one of %v", s.ctx.dev, e.ctx.dev)
		}
		if err := e.begin(); err != nil {
			return false, err
		}
		defer e.end()
	}
	leave, err := s.enter()
	if err != nil {
		return false, err
	}
	defer leave()
	s.ctx.drv.capture.RLock()
	defer s.ctx.drv.capture.RUnlock()
	notes := make([]func(), len(events))
	for i, e := range events {
		if notes[i], err = s.noteOfRecord(e); err != nil {
			return false, err
		}
	}
	if err := call(); err != nil {
		return false, err
	}
	for _, note := range notes {
		if note != nil {
			captured = true
			note()
		}
	}
	return captured, nil
}

// LaunchHostFunc enqueues a call of the C function fn, of type
// void (*)(void *userData), on a thread of the driver. fn must not call the
// driver. It calls cuLaunchHostFunc.
//
// Stream-ordered on s; returns before completion. Captured as a host node. fn
// does not run if work before it on the device failed.
//
// Lifetime: the caller must keep what fn and userData point to alive until fn
// has run, or while captured until the last graph with the node is gone.
func (s *Stream) LaunchHostFunc(fn, userData uintptr) error {
	return s.call("cuLaunchHostFunc", func(api driver.API) driver.CUresult {
		return api.CuLaunchHostFunc(s.h, driver.CUhostFn(fn), userData)
	})
}

// Priority returns the priority that s has, after the driver's clamping. It
// calls cuStreamGetPriority.
func (s *Stream) Priority() (int, error) {
	leave, err := s.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	p, r := s.ctx.drv.api.CuStreamGetPriority(s.h)
	return int(p), s.ctx.check("cuStreamGetPriority", r)
}

// IsBlocking reports whether s and the legacy default stream wait for each
// other. It calls cuStreamGetFlags.
func (s *Stream) IsBlocking() (bool, error) {
	leave, err := s.enter()
	if err != nil {
		return false, err
	}
	defer leave()
	flags, r := s.ctx.drv.api.CuStreamGetFlags(s.h)
	return flags&driver.CU_STREAM_NON_BLOCKING == 0, s.ctx.check("cuStreamGetFlags", r)
}

// ID returns a number that is unique in this process, unlike handles, which are
// reused. It calls cuStreamGetId.
func (s *Stream) ID() (uint64, error) {
	leave, err := s.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	id, r := s.ctx.drv.api.CuStreamGetId(s.h)
	return id, s.ctx.check("cuStreamGetId", r)
}

// IsClosed reports whether Close was called.
func (s *Stream) IsClosed() bool { return s.uses.closed() }

// Close ends the use of s. Work already queued still completes. Closing twice
// is fine, and closing a default stream does nothing. It calls cuStreamDestroy
// unless the handle is another library's, known to others ([Stream.Expose]), or
// still in use; then the last user does.
//
// Does not block. While s is capturing, the handle lives until the capture has
// ended.
func (s *Stream) Close() error {
	if s.kind == defaultStream {
		return nil
	}
	last := s.uses.close()
	s.companion.close()
	if last {
		s.destroy()
	}
	return nil
}

// destroy destroys the handle. It runs once, when s can no longer be used.
func (s *Stream) destroy() {
	if s.kind != ownStream {
		return
	}
	parked := false
	s.ctx.dispose("cuStreamDestroy", s.String(), s.capturing, &s.ctx.drv.live.streams, func(api driver.API) driver.CUresult {
		if parked = s.exposed.Load(); parked {
			s.ctx.parked.put(s)
			return driver.CUDA_SUCCESS
		}
		return api.CuStreamDestroy(s.h)
	}, func() {
		s.allCapturesOver()
		if g := s.like.green; g != nil && !parked { // a parked stream keeps it
			g.end()
		}
	})
}
