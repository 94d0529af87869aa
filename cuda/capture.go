// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A CaptureMode says which calls the driver refuses while a stream is
// capturing; making one invalidates the capture.
type CaptureMode int32

const (
	// CaptureGlobal refuses calls that may be unsafe, such as a synchronous
	// allocation, in every thread.
	CaptureGlobal CaptureMode = 0
	// CaptureThreadLocal refuses them in the capturing thread only.
	CaptureThreadLocal CaptureMode = 1
	// CaptureRelaxed refuses none, and lets another thread end the capture.
	CaptureRelaxed CaptureMode = 2
)

// A CaptureStatus is a stream's capture state.
type CaptureStatus int32

const (
	// CaptureNone means that work is enqueued.
	CaptureNone CaptureStatus = 0
	// CaptureActive means that work becomes nodes of a graph.
	CaptureActive CaptureStatus = 1
	// CaptureInvalidated means that an error invalidated the capture; only EndCapture
	// gets the stream out of it.
	CaptureInvalidated CaptureStatus = 2
)

// CaptureInfo describes an open capture.
type CaptureInfo struct {
	Status CaptureStatus
	// ID is the driver's number for the capture. Captures into one graph can
	// have the same.
	ID uint64
	// Graph is the graph under construction. It belongs to the driver: nodes
	// may be added, nothing may be destroyed.
	Graph GraphHandle
	// Dependencies are the nodes that the next operation will depend on.
	Dependencies []NodeHandle
}

// BeginCapture makes s record work in a graph instead of running it, until
// [Stream.EndCapture]. It calls cuStreamBeginCapture.
//
// Concurrency: unless mode is [CaptureRelaxed] the capture belongs to the OS
// thread, so the caller must hold it, with runtime.LockOSThread, until
// EndCapture.
//
// Errors: [ErrorStreamCaptureImplicit] or [ErrorStreamCaptureUnsupported] for
// the legacy default stream; [ErrorIllegalState] if s is capturing already.
func (s *Stream) BeginCapture(mode CaptureMode) error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	// Counted first: a thread that sees no capture may make calls that would
	// invalidate one.
	s.ctx.drv.countCapture()
	s.ctx.drv.capture.Lock()
	defer s.ctx.drv.capture.Unlock()
	r := s.ctx.drv.api.CuStreamBeginCapture(s.h, driver.CUstreamCaptureMode(mode))
	if r == driver.CUDA_SUCCESS {
		s.CaptureOver() // one whose end was not noticed
		s.begun.add(s.captureThread(), s.numberCapture())
	} else {
		s.ctx.drv.captures.Add(-1)
	}
	if r == driver.CUDA_ERROR_ILLEGAL_STATE {
		return s.ctx.fail("cuStreamBeginCapture", r, s.String()+" is capturing already: end that capture first, or capture another stream")
	}
	if s.IsDefault() && (r == driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || r == driver.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
		const why = "the legacy default stream cannot be captured: capture a stream that was created"
		return s.ctx.fail("cuStreamBeginCapture", r, why)
	}
	return s.ctx.check("cuStreamBeginCapture", r)
}

// Capturing reports whether a capture is open that [Stream.BeginCapture] began.
// Captures of other libraries are not known here.
func (d *Driver) Capturing() bool { return d.captures.Load() > 0 }

// begunCaptures are the captures that were begun in a stream, and are counted: one
// at most, but in the per-thread default stream one for each thread.
type begunCaptures struct {
	mu  sync.Mutex     // a leaf
	ids map[int]uint64 // guarded by mu; the driver's numbers by captureThread, 0 if it gave none
}

func (b *begunCaptures) add(thread int, id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ids == nil {
		b.ids = make(map[int]uint64)
	}
	b.ids[thread] = id
}

func (b *begunCaptures) take(thread int) (id uint64, found bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, found = b.ids[thread]
	delete(b.ids, thread)
	return id, found
}

func (b *begunCaptures) threads() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.ids))
}

// captureThread is the OS thread whose stream s stands for, or 0.
func (s *Stream) captureThread() int {
	if s == s.ctx.perThread {
		return syscall.Gettid()
	}
	return 0
}

// numberCapture queries the number of the capture that has begun in s. Without
// a number, events recorded in it count as captured by another library.
func (s *Stream) numberCapture() uint64 {
	info, r := s.ctx.drv.api.CuStreamGetCaptureInfo(s.h, false)
	if r != driver.CUDA_SUCCESS {
		return 0
	}
	s.ctx.drv.open.begin(info.ID)
	return info.ID
}

// CaptureOver notes that the capture begun in s is over, if there was one, although
// the driver did not say so when it ended: for a stream of which another [Stream]
// with the same handle has begun a later one.
func (s *Stream) CaptureOver() { s.captureOver(s.captureThread()) }

func (s *Stream) captureOver(thread int) {
	id, found := s.begun.take(thread)
	if !found {
		return
	}
	s.ctx.drv.captures.Add(-1)
	if id != 0 {
		s.ctx.drv.open.end(id)
	}
}

// allCapturesOver is for a stream that is gone.
func (s *Stream) allCapturesOver() {
	for _, thread := range s.begun.threads() {
		s.captureOver(thread)
	}
}

// EndCapture ends the capture that was begun in s and returns its graph. It
// calls cuStreamEndCapture. On an error there is no graph; [Stream.IsCapturing]
// then tells whether the capture is over, which it is not for the last two
// errors below.
//
// Releases that were postponed during the capture happen now, unless
// [Driver.OnCaptureEnd] has set a function for that.
//
// Lifetime: the caller owns the graph.
//
// Errors: [ErrorStreamCaptureInvalidated] if an earlier error invalidated the
// capture; [ErrorStreamCaptureUnjoined] if a stream that joined it was not
// joined back; [ErrorStreamCaptureUnmatched] if it was not begun in s;
// [ErrorStreamCaptureWrongThread] if it was begun by another thread.
func (s *Stream) EndCapture() (GraphHandle, error) {
	g, err := s.endCapture()
	if f := s.ctx.drv.onCaptureEnd.Load(); f != nil {
		(*f)()
	} else {
		s.ctx.drv.Drain()
	}
	return g, err
}

// OnCaptureEnd sets the function that [Stream.EndCapture] calls in place of
// [Driver.Drain]: postponed releases can wait for the device, which not every
// caller of EndCapture may do. It runs on that goroutine, with no lock held.
// Nil restores the Drain. It is also called, on any goroutine and possibly
// during a Drain, when a release failed because an earlier call failed: it must
// not drain at once.
func (d *Driver) OnCaptureEnd(f func()) {
	if f == nil {
		d.onCaptureEnd.Store(nil)
		return
	}
	d.onCaptureEnd.Store(&f)
}

func (s *Stream) endCapture() (GraphHandle, error) {
	leave, err := s.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	s.ctx.drv.capture.Lock()
	defer s.ctx.drv.capture.Unlock()
	g, r := s.ctx.drv.api.CuStreamEndCapture(s.h)
	if r == driver.CUDA_SUCCESS || !s.stillCapturing() {
		s.CaptureOver()
	}
	return GraphHandle(g), s.ctx.check("cuStreamEndCapture", r)
}

// stillCapturing asks the driver after a failed EndCapture. If that fails too
// the capture counts as open, unless the device has failed for good.
//
// Preconditions: the context is current, the handle is valid.
func (s *Stream) stillCapturing() bool {
	st, r := s.ctx.drv.api.CuStreamIsCapturing(s.h)
	if r != driver.CUDA_SUCCESS {
		return !Result(r).Sticky()
	}
	return st != driver.CU_STREAM_CAPTURE_STATUS_NONE
}

// RecordUncaptured is [Stream.Record], unless s is capturing: then it does
// nothing and reports false. So e is never part of a capture, and can be
// queried at any time. No capture of this package begins or ends, nor does s
// join one, between the check and the record. For threads that use s: a record
// by another thread could coincide with a capture of another library, about
// which nothing is known.
func (s *Stream) RecordUncaptured(e *Event) (recorded bool, err error) {
	return s.recordUnless(e, func() bool { return false })
}

// RecordAside is [Stream.RecordUncaptured] for a thread that does not use s: it
// also does nothing while a capture is open that s could join through a driver
// call made elsewhere.
func (s *Stream) RecordAside(e *Event) (recorded bool, err error) {
	return s.recordUnless(e, s.ctx.drv.Capturing)
}

func (s *Stream) recordUnless(e *Event, refuse func() bool) (recorded bool, err error) {
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
	if capturing, err := s.capturing(); err != nil || capturing || refuse() {
		return false, err
	}
	r := s.ctx.drv.api.CuEventRecord(e.h, s.h)
	if isCaptureRefusal(r) {
		return false, nil
	}
	return r == driver.CUDA_SUCCESS, s.ctx.check("cuEventRecord", r)
}

// LockRecord keeps captures from beginning and ending until UnlockRecord, for a
// caller that records an event outside this package: see [Stream.Record].
func (d *Driver) LockRecord() { d.capture.RLock() }

// UnlockRecord ends what [Driver.LockRecord] began, on whatever thread.
func (d *Driver) UnlockRecord() { d.capture.RUnlock() }

// lockJoin takes the capture lock for a call that may make a stream join a
// capture: exclusively if one is open.
func (d *Driver) lockJoin() (unlock func()) {
	d.capture.RLock()
	if d.captures.Load() == 0 { // and none can begin now
		return d.capture.RUnlock
	}
	d.capture.RUnlock()
	d.capture.Lock()
	return d.capture.Unlock
}

// tryShareCapture takes the capture lock for a question about a capture, which
// must not end meanwhile. Who asks may have the GIL, and so does not wait for ever:
// a thread that ends a capture can wait for a record that is stuck, and for that
// time nothing ends.
func (d *Driver) tryShareCapture() bool {
	const tries, pause = 400, 5 * time.Microsecond
	for range tries {
		if d.capture.TryRLock() {
			return true
		}
		time.Sleep(pause)
	}
	return false
}

// tryLockJoin takes the lock exclusively, or returns nil if another thread has it:
// mostly for microseconds, but a record can be stuck with it.
func (d *Driver) tryLockJoin() (unlock func()) {
	const tries, pause = 10, 5 * time.Microsecond
	for range tries {
		if d.capture.TryLock() {
			return d.capture.Unlock
		}
		time.Sleep(pause)
	}
	return nil
}

// IsCapturing returns the capture state. It calls cuStreamIsCapturing, does not
// block, and is always allowed.
func (s *Stream) IsCapturing() (CaptureStatus, error) {
	leave, err := s.enter()
	if err != nil {
		return CaptureNone, err
	}
	defer leave()
	st, r := s.ctx.drv.api.CuStreamIsCapturing(s.h)
	return CaptureStatus(st), s.ctx.check("cuStreamIsCapturing", r)
}

// CaptureInfo returns the graph under construction and the dependencies of the
// next operation. The other fields are meaningful only if Status is
// [CaptureActive]. It calls cuStreamGetCaptureInfo.
//
// Preconditions: no other thread captures into that graph or ends the capture
// during the call: the driver synchronizes nothing of it.
func (s *Stream) CaptureInfo() (CaptureInfo, error) { return s.captureInfo(true) }

// CaptureIdentity is CaptureInfo without the dependencies, and is allowed beside
// other threads that use the capture, and the one that ends it, if it is ours.
func (s *Stream) CaptureIdentity() (CaptureInfo, error) {
	if s.ctx.drv.tryShareCapture() {
		defer s.ctx.drv.capture.RUnlock()
	}
	return s.captureInfo(false)
}

func (s *Stream) captureInfo(deps bool) (CaptureInfo, error) {
	leave, err := s.enter()
	if err != nil {
		return CaptureInfo{}, err
	}
	defer leave()
	ci, r := s.ctx.drv.api.CuStreamGetCaptureInfo(s.h, deps)
	if err := s.ctx.check("cuStreamGetCaptureInfo", r); err != nil {
		return CaptureInfo{}, err
	}
	return CaptureInfo{CaptureStatus(ci.Status), ci.ID, GraphHandle(ci.Graph), fromNodes(ci.Deps)}, nil
}

// SetCaptureDependencies makes the next operation captured in s depend on nodes
// of the captured graph, and on nothing else. It calls
// cuStreamUpdateCaptureDependencies.
//
// Errors: [ErrorIllegalState] if s is not capturing.
func (s *Stream) SetCaptureDependencies(nodes []NodeHandle) error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	r := s.ctx.drv.api.CuStreamUpdateCaptureDependencies(s.h, toNodes(nodes), driver.CU_STREAM_SET_CAPTURE_DEPENDENCIES)
	return s.ctx.check("cuStreamUpdateCaptureDependencies", r)
}

// capturing reports whether s is in a capture, including an invalidated one.
// The legacy default stream cannot be captured, and querying it while another
// stream is captured is an error of its own: it counts as capturing then.
//
// Preconditions: the context is current, the handle is valid.
func (s *Stream) capturing() (bool, error) {
	st, r := s.ctx.drv.api.CuStreamIsCapturing(s.h)
	if isCaptureRefusal(r) {
		return true, nil
	}
	return st != driver.CU_STREAM_CAPTURE_STATUS_NONE, s.ctx.check("cuStreamIsCapturing", r)
}
