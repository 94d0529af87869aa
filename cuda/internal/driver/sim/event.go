// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
)

const eventFlags = driver.CU_EVENT_BLOCKING_SYNC | driver.CU_EVENT_DISABLE_TIMING | driver.CU_EVENT_INTERPROCESS

// waitExternal is CU_EVENT_WAIT_EXTERNAL: in a capture, the wait becomes a
// node. From cuda.h, CUDA 12.4.
const waitExternal = 1

// started is the origin of event times.
var started = time.Now()

// event is a marker that can be set into streams again and again.
type event struct {
	ctx    *context
	handle driver.CUevent
	flags  uint32
	shared *sharedEvent // immutable; nil unless processes share it

	mu     sync.Mutex
	latest *record // guarded by mu; nil before the first record
}

// record is one recording of an event. A wait for an event waits for the
// recording that was the latest at that time.
type record struct {
	point
	at atomic.Int64 // nanoseconds since started
	// Of an event that processes share: the page, and the number there.
	shared *sharedEvent
	number uint64

	// A record in a capture has these and no point.
	capture *capture
	nodes   []*node                          // the work that the event marks
	early   map[*node]driver.CUgraphEdgeData // of those whose completion it does not wait for
}

// run is called when the stream reaches the record.
func (r *record) run(x *execution) *failure {
	r.at.Store(int64(time.Since(started)))
	switch {
	case r.shared == nil:
	case x.ctx.findings.stopped.Load():
		r.shared.lose(r.number)
	default:
		r.shared.finish(r.number)
	}
	return nil
}

// drop tells other processes that the context has failed: they would wait for
// ever, or take the work before the record for done.
func (r *record) drop() {
	if r.shared != nil {
		r.shared.lose(r.number)
	}
}

func (e *event) get() *record {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.latest
}

func (e *event) set(r *record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.latest = r
}

func (d *simulator) event(h driver.CUevent) (*event, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	e := d.events.get(h)
	if e == nil {
		return nil, driver.CUDA_ERROR_INVALID_HANDLE
	}
	if e.shared != nil && e.shared.destroyed.Load() != 0 { // by the other process; with NVIDIA's driver undefined
		return nil, driver.CUDA_ERROR_INVALID_HANDLE
	}
	return e, e.ctx.result()
}

func (d *simulator) CuEventCreate(flags uint32) (driver.CUevent, driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	const interprocess, untimed = driver.CU_EVENT_INTERPROCESS, driver.CU_EVENT_DISABLE_TIMING
	if flags&^eventFlags != 0 || flags&interprocess != 0 && flags&untimed == 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	d.behindLaunches()
	e := &event{ctx: c, flags: flags}
	if flags&interprocess != 0 {
		var err error
		if e.shared, err = d.eventFile.add(); err != nil {
			return 0, resultOf(err, driver.CUDA_ERROR_NOT_SUPPORTED)
		}
	}
	e.handle = d.events.add(e)
	return e.handle, driver.CUDA_SUCCESS
}

func (d *simulator) CuEventDestroy(h driver.CUevent) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	e := d.events.take(h)
	if e == nil {
		return driver.CUDA_ERROR_INVALID_HANDLE
	}
	if c := d.openCaptureOf(e); c != nil {
		d.enterEvent(c.origin, "cuEventDestroy")
		defer d.leaveEvent(c.origin)
	}
	d.behindLaunches()
	if e.shared != nil && !e.shared.imported {
		d.eventFile.remove(e.shared)
	}
	return e.ctx.result()
}

// openCaptureOf returns the capture that e was recorded in, until it has ended.
func (d *simulator) openCaptureOf(e *event) *capture {
	rec := e.get()
	if rec == nil || rec.capture == nil {
		return nil
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	if rec.capture.ended {
		return nil
	}
	return rec.capture
}

func (d *simulator) CuEventRecord(h driver.CUevent, hs driver.CUstream) driver.CUresult {
	s, r := d.stream(hs)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	e, r := d.event(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if e.ctx != s.ctx {
		return driver.CUDA_ERROR_INVALID_HANDLE
	}
	d.enterEvent(s, "cuEventRecord")
	defer d.leaveEvent(s)
	d.behindGraphs()
	s.behindOwn()
	if captured, r := d.captureRecord(s, e); captured {
		return r
	}
	rec := &record{}
	if e.shared != nil {
		rec.shared, rec.number = e.shared, e.shared.begin()
	}
	rec.point = s.enqueueQuick(rec)
	e.set(rec)
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuStreamWaitEvent(hs driver.CUstream, h driver.CUevent, flags uint32) driver.CUresult {
	if flags&^waitExternal != 0 {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	s, r := d.stream(hs)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	e, r := d.event(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	s.behindOwn()
	if captured, r := d.captureWait(s, e, flags == waitExternal); captured {
		return r
	}
	if e.shared != nil {
		return d.waitShared(s, e)
	}
	if rec := e.get(); rec != nil && (!rec.reached() || d.check.ordering()) {
		s.enqueueQuick(joinWork{}, rec.point)
	}
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuEventQuery(h driver.CUevent) driver.CUresult {
	e, rec, r := d.observe(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if rec != nil && !rec.reached() || e.shared != nil && !e.shared.reached(e.shared.latest.Load()) {
		return driver.CUDA_ERROR_NOT_READY
	}
	if rec != nil {
		d.waited(rec.point)
	}
	if e.shared != nil {
		if f := e.shared.lossOf(e.shared.latest.Load()); f != nil {
			e.ctx.fail(f)
		}
	}
	return e.ctx.result()
}

func (d *simulator) CuEventSynchronize(h driver.CUevent) driver.CUresult {
	e, rec, r := d.observe(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if rec != nil {
		rec.wait()
		d.waited(rec.point)
	}
	if e.shared != nil {
		e.shared.host(e.ctx, e.shared.latest.Load())
	}
	e.ctx.dev.trimPools()
	return e.ctx.outcome()
}

// observe returns an event and its latest record, for host queries. Querying an
// event of a capture is an error: it invalidates an open capture; after the
// capture has ended the code is an ordinary invalid value, as measured on an
// H200, driver 580.159.
func (d *simulator) observe(h driver.CUevent) (*event, *record, driver.CUresult) {
	e, r := d.event(h)
	if r != driver.CUDA_SUCCESS {
		return nil, nil, r
	}
	rec := e.get()
	if rec != nil && rec.capture != nil {
		if !d.invalidate(rec.capture) {
			return nil, nil, driver.CUDA_ERROR_INVALID_VALUE
		}
		return nil, nil, driver.CUDA_ERROR_CAPTURED_EVENT
	}
	return e, rec, d.unsafeCall()
}

func (d *simulator) CuEventElapsedTime(start, end driver.CUevent) (float32, driver.CUresult) {
	var at [2]int64
	for i, h := range []driver.CUevent{start, end} {
		e, r := d.event(h)
		if r != driver.CUDA_SUCCESS {
			return 0, r
		}
		rec := e.get()
		if rec == nil || e.flags&driver.CU_EVENT_DISABLE_TIMING != 0 {
			return 0, driver.CUDA_ERROR_INVALID_HANDLE
		}
		if rec.capture != nil {
			return 0, driver.CUDA_ERROR_CAPTURED_EVENT
		}
		if !rec.reached() {
			return 0, driver.CUDA_ERROR_NOT_READY
		}
		at[i] = rec.at.Load()
	}
	return float32(float64(at[1]-at[0]) / 1e6), driver.CUDA_SUCCESS
}
