// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// This file simulates cases in which NVIDIA's driver crashes with SIGSEGV, as
// measured on an H200, driver 580.159. There is no code to return, so the
// process ends here too, before it would on a GPU.

// traffic counts threads inside calls on one stream that must not overlap.
type traffic struct {
	events    atomic.Int32           // calls that record an event in it, or destroy one that was recorded in its capture
	capturing atomic.Pointer[string] // the call that begins or ends a capture
	asking    atomic.Int32           // calls that ask about its capture, also of a stream that joined it
}

var beginsCapture, endsCapture = "cuStreamBeginCapture", "cuStreamEndCapture"

// enterCapture is at the head of the calls that begin or end a capture of s, and
// leaveCapture at their end.
func (d *simulator) enterCapture(s *stream, call *string) {
	s.traffic.capturing.Store(call)
	if s.traffic.events.Load() > 0 {
		d.die(fmt.Sprintf("%s of stream %#x was called while cuEventRecord into it was running, or cuEventDestroy of an event that its "+
			"capture has recorded", *call, uint64(s.handle)))
	}
	if call == &endsCapture && s.traffic.asking.Load() > 0 {
		d.die(fmt.Sprintf("%s of stream %#x was called while %s", *call, uint64(s.handle), asksInCapture))
	}
	d.linger()
}

func (d *simulator) leaveCapture(s *stream) {
	d.linger()
	s.traffic.capturing.Store(nil)
}

// enterEvent is at the head of a record into s, and of the destruction of an
// event that a capture begun in s has recorded; leaveEvent is at their end.
// Whichever of two threads comes second sees the other: both write first.
func (d *simulator) enterEvent(s *stream, call string) {
	s.traffic.events.Add(1)
	if capture := s.traffic.capturing.Load(); capture != nil {
		d.die(fmt.Sprintf("%s entered stream %#x while %s of it was running", call, uint64(s.handle), *capture))
	}
	d.linger()
}

func (d *simulator) leaveEvent(s *stream) { s.traffic.events.Add(-1) }

const asksInCapture = "cuStreamGetCaptureInfo asked about its capture"

// enterAsk is at the head of a call that asks about the capture of s, if there is
// one: more than whether there is.
func (d *simulator) enterAsk(s *stream) (leave func()) {
	c := s.capture.Load()
	if c == nil {
		return func() {}
	}
	t := &c.origin.traffic
	t.asking.Add(1)
	if t.capturing.Load() == &endsCapture {
		d.die(fmt.Sprintf("%s while %s of stream %#x was running", asksInCapture, endsCapture, uint64(c.origin.handle)))
	}
	d.linger()
	return func() { t.asking.Add(-1) }
}

// contextTraffic counts threads inside cuCtxSynchronize and inside the calls that
// change which memory the pools have, which must not overlap. Of one context or of
// several: only one was tried.
type contextTraffic struct{ waits, changes atomic.Int32 }

const poolsMeetWait = "a pool, or memory of an imported one, came or went while cuCtxSynchronize was running"

// enterWait is at the head of cuCtxSynchronize.
func (d *simulator) enterWait() (leave func()) {
	d.traffic.waits.Add(1)
	if d.traffic.changes.Load() > 0 {
		d.die(poolsMeetWait)
	}
	return func() { d.traffic.waits.Add(-1) }
}

// enterPoolChange is at the head of the calls that destroy a pool or import one, and
// of those that import or free memory of one that was imported.
func (d *simulator) enterPoolChange() (leave func()) {
	d.traffic.changes.Add(1)
	if d.traffic.waits.Load() > 0 {
		d.die(poolsMeetWait)
	}
	d.linger()
	return func() { d.traffic.changes.Add(-1) }
}

// linger makes a call take as long as on a busy machine, so that calls that
// must not overlap do.
func (d *simulator) linger() {
	if d.config.hostile {
		time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond)
	}
}

// staleStream is the result of a call with a stream that does not exist.
func (d *simulator) staleStream(h driver.CUstream) driver.CUresult {
	if d.config.hostile {
		d.die(fmt.Sprintf("%s was called with stream %#x, which was destroyed or never existed", callName(), uint64(h)))
	}
	return driver.CUDA_ERROR_INVALID_HANDLE
}

// callName finds the driver call that is running, on the stack.
func callName() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if _, method, ok := strings.Cut(f.Function, "(*simulator).Cu"); ok {
			return "cu" + method
		}
		if !more {
			return "a call"
		}
	}
}

// die prints what the caller did and ends the process, or calls [Options.Crash]
// if that is set.
func (d *simulator) die(what string) {
	text := "simulated driver: " + what + ": NVIDIA's driver crashes here"
	if d.crash != nil {
		d.crash(text)
		return
	}
	fmt.Fprintln(os.Stderr, text)
	// A signal to this thread, so that a handler such as Python's faulthandler
	// shows the call. recover cannot stop it.
	runtime.LockOSThread()
	_ = syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGABRT)
	time.Sleep(time.Second) // a handler may be writing
	os.Exit(int(128 + syscall.SIGABRT))
}
