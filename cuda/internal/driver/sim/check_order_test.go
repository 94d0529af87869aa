// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// orderedSession is a driver that looks for races, and 512 bytes of device memory.
type orderedSession struct {
	*testing.T
	*simulator
	ctx    driver.CUcontext
	memory driver.CUdeviceptr
}

func newOrderedSession(t *testing.T) *orderedSession {
	api, err := Open(Options{Config: "check=full"})
	require.NoError(t, err)
	runtime.LockOSThread()
	s := &orderedSession{T: t, simulator: api.(*simulator)}
	t.Cleanup(func() {
		runtime.UnlockOSThread()
		require.NoError(t, api.Close())
	})
	s.ok(api.CuInit(0))
	var r driver.CUresult
	s.ctx, r = api.CuDevicePrimaryCtxRetain(0)
	s.ok(r)
	s.ok(api.CuCtxPushCurrent(s.ctx))
	s.memory, r = api.CuMemAlloc(512)
	s.ok(r)
	return s
}

func (s *orderedSession) ok(r driver.CUresult) {
	s.Helper()
	require.Equal(s.T, driver.CUDA_SUCCESS, r)
}

func (s *orderedSession) openStream() driver.CUstream {
	h, r := s.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	s.ok(r)
	return h
}

// fill queues work of the stream that touches the part-th 128 bytes.
func (s *orderedSession) fill(h driver.CUstream, part int) {
	s.ok(s.CuMemsetD8Async(s.memory+driver.CUdeviceptr(128*part), 1, 128, h))
}

// hold makes the work of a stream wait until the function that it returns is
// called.
func (s *orderedSession) hold(h driver.CUstream) (release func()) {
	flag := s.memory + 384
	by := s.openStream()
	s.ok(s.CuStreamWriteValue32(by, flag, 0, 0))
	s.finish(by)
	s.ok(s.CuStreamWaitValue32(h, flag, 1, driver.CU_STREAM_WAIT_VALUE_EQ))
	return sync.OnceFunc(func() { s.ok(s.CuStreamWriteValue32(by, flag, 1, 0)) })
}

// finish waits for a stream without telling the check.
func (s *orderedSession) finish(h driver.CUstream) { s.streams.get(h).end().wait() }

// Others may query what the program has waited for itself, and the rest a second
// after its end.
func TestMayQuery(t *testing.T) {
	d := newOrderedSession(t)
	s, other := d.openStream(), d.openStream()
	h, r := d.CuEventCreate(driver.CU_EVENT_DISABLE_TIMING)
	d.ok(r)
	require.True(t, d.MayQuery(h), "never recorded")
	record := func() {
		d.fill(s, 0)
		d.ok(d.CuEventRecord(h, s))
	}

	release := d.hold(s)
	defer release()
	record()
	d.fill(other, 1)
	d.ok(d.CuStreamSynchronize(other))
	require.False(t, d.MayQuery(h), "it has not ended")
	release()
	d.finish(s)
	require.False(t, d.MayQuery(h), "nobody has waited for it")
	d.ok(d.CuStreamSynchronize(s))
	require.True(t, d.MayQuery(h))
	d.fill(s, 0)
	require.True(t, d.MayQuery(h), "later work says nothing about it")

	record()
	d.finish(s)
	require.False(t, d.MayQuery(h))
	d.events.get(h).get().at.Add(-int64(upkeepPause))
	require.True(t, d.MayQuery(h), "it ended long ago")

	record()
	d.finish(s)
	require.False(t, d.MayQuery(h))
	_, err := d.SetChecks("uninitialized")
	require.NoError(t, err)
	require.True(t, d.MayQuery(h))
	_, err = d.SetChecks("races")
	require.NoError(t, err)
	require.True(t, d.MayQuery(h), "queued before the check began")

	record()
	d.finish(s)
	require.False(t, d.MayQuery(h))
	d.streams.get(s).ctx.fail(&failure{code: driver.CUDA_ERROR_ILLEGAL_ADDRESS})
	require.True(t, d.MayQuery(h), "the query fails")
	_ = d.CuEventDestroy(h)
	require.True(t, d.MayQuery(h), "the query fails")
}

// What stands for others counts: they wait, and with them the program.
func TestMayQueryThroughAnotherStream(t *testing.T) {
	d := newOrderedSession(t)
	s, after := d.openStream(), d.openStream()
	h, r := d.CuEventCreate(driver.CU_EVENT_DISABLE_TIMING)
	d.ok(r)
	d.fill(s, 0)
	d.ok(d.CuEventRecord(h, s))
	d.ok(d.CuStreamWaitEvent(after, h, 0))
	d.finish(after)
	require.False(t, d.MayQuery(h))
	d.ok(d.CuStreamSynchronize(after))
	require.True(t, d.MayQuery(h))
}

// TestOrderIsPruned: the state does not grow with the number of streams ever created.
func TestOrderIsPruned(t *testing.T) {
	d := newOrderedSession(t)
	o := &d.check.order
	open := d.openStream()
	for range 10 {
		s := d.openStream()
		d.fill(s, 0)
		d.fill(open, 1)
		d.finish(open)
		d.ok(d.CuStreamSynchronize(s))
		d.ok(d.CuStreamDestroy(s))
	}
	o.mu.Lock()
	streams, host := len(o.streams), len(o.host)
	o.mu.Unlock()
	require.Equal(t, 1, streams)
	require.Zero(t, host)
	d.ok(d.CuCtxSynchronize())
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Empty(t, o.streams)
	require.Empty(t, o.host)
	require.Empty(t, o.tasks)
}

// What the host has seen the end of can race with work that was queued before it
// looked, and with nothing that is queued later.
func TestPendingWorkRaces(t *testing.T) {
	d := newOrderedSession(t)
	behind, s, later := d.openStream(), d.openStream(), d.openStream()
	release := d.hold(behind)
	defer release()
	d.fill(behind, 0)
	d.fill(s, 0)
	d.fill(s, 1)
	d.ok(d.CuStreamSynchronize(s))
	d.fill(later, 1)
	d.finish(later)
	release()
	d.finish(behind)
	require.Len(t, d.TakeReports(), 1)
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, d.CuCtxSynchronize())
	d.FaultReport(d.ctx)
	o := &d.check.order
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Empty(t, o.streams)
	require.Empty(t, o.host)
	require.Empty(t, o.tasks)
}

// Work may begin after a wait of the host, and before what the wait lets be
// forgotten is.
func TestWorkThatBeginsAsTracesAreForgotten(t *testing.T) {
	d := newOrderedSession(t)
	s, racing, later := d.openStream(), d.openStream(), d.openStream()
	d.fill(s, 0)
	d.finish(s)
	last, allDone := d.check.order.hostWaited(d.streams.get(s).end())
	require.True(t, allDone)
	d.fill(racing, 0)
	d.finish(racing)
	d.forgetTraces(last)
	d.fill(later, 0)
	d.finish(later)
	require.Len(t, d.TakeReports(), 1)
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, d.CuCtxSynchronize())
	d.FaultReport(d.ctx)
}

// Work that is queued ahead of an access of the host, and runs after it, is not
// ordered by what the host waits for meanwhile.
func TestPendingWorkRacesWithTheHost(t *testing.T) {
	d := newOrderedSession(t)
	s, behind := d.openStream(), d.openStream()
	host, r := d.CuMemHostAlloc(128, 0)
	d.ok(r)
	e, r := d.CuEventCreate(driver.CU_EVENT_DISABLE_TIMING)
	d.ok(r)
	gate := make(chan struct{})
	release := sync.OnceFunc(func() { close(gate) })
	defer release()
	d.callHost = func(driver.CUhostFn, uintptr) { <-gate }

	d.fill(s, 0)
	d.ok(d.CuEventRecord(e, s))
	d.ok(d.CuStreamWaitEvent(behind, e, 0))
	d.ok(d.CuLaunchHostFunc(behind, 1, 0))
	d.ok(d.CuMemcpyAsync(driver.CUdeviceptr(host), d.memory, 128, behind))
	d.HostAccess(host, 128)
	d.ok(d.CuStreamSynchronize(s))
	release()
	d.finish(behind)
	require.Len(t, d.TakeReports(), 1)
	require.Equal(t, driver.CUDAGO_CHECK_FAILED, d.CuCtxSynchronize())
	d.FaultReport(d.ctx)
}

// An item that overlaps with those in front of it in its stream is not after
// them, even when the host has seen their end.
func TestPendingHasteRaces(t *testing.T) {
	var o order
	s := &stream{}
	s.timeline.stream = s
	tl := &s.timeline
	s.last.Store(2)
	o.queued(point{tl, 1}, nil, 0)
	o.add(&task{mark: mark{at: point{tl, 1}}})
	o.queued(point{tl, 2}, nil, 0)
	s.done.Store(1)
	o.hostWaited(point{tl, 1})
	require.Len(t, o.tasks, 1)
	s.done.Store(2)
	o.hostWaited(point{tl, 2})
	require.Empty(t, o.tasks)
	require.Empty(t, o.streams)
}

// A stream that stays behind makes nothing grow.
func TestEndedTasksAreForgotten(t *testing.T) {
	d := newOrderedSession(t)
	behind := d.openStream()
	release := d.hold(behind)
	defer release()
	d.fill(behind, 0)
	o := &d.check.order
	most := 0
	for range 3 * mostEnded {
		s := d.openStream()
		d.fill(s, 1)
		d.ok(d.CuStreamSynchronize(s))
		d.ok(d.CuStreamDestroy(s))
		o.mu.Lock()
		most = max(most, len(o.tasks), len(o.host), len(o.streams))
		o.mu.Unlock()
	}
	require.Less(t, most, 2*mostEnded+10)
	release()
	d.ok(d.CuCtxSynchronize())
	require.Empty(t, o.tasks)
}

// In one launch nobody waits, so a long loop has to forget by itself.
func TestLoopsForget(t *testing.T) {
	var o order
	g := &graphRun{}
	most := 0
	for range 10 * mostTurned {
		g.turned(&o, o.add(&task{run: g}))
		most = max(most, len(o.tasks))
	}
	require.Equal(t, 2*mostTurned-1, most)
	require.Contains(t, o.tasks, o.last)
	require.NotContains(t, o.tasks, o.last-2*mostTurned)
}
