// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var invalidations = map[string]func(*suite){
	"capture is invalidated by waiting for its stream":     invalidateSynchronize,
	"capture is invalidated by querying its stream":        invalidateQuery,
	"capture is invalidated by querying its event":         invalidateEvent,
	"capture is invalidated by waiting for its event":      invalidateEventWait,
	"capture does not care for its event otherwise":        invalidateEventElsewhere,
	"capture that is over leaves a useless event":          invalidateEventLate,
	"capture is invalidated by a graph launch into it":     invalidateGraphLaunch,
	"capture is invalidated by work in the default stream": invalidateLegacy,
	"capture is invalidated by waiting for its context":    invalidateContext,
	"capture in global mode refuses unsafe calls":          invalidateGlobal,
	"capture in relaxed mode allows them":                  invalidateRelaxed,
	"capture in thread-local mode is deaf to others":       invalidateThreadLocal,
	"capture survives calls of a relaxed thread":           invalidateExchange,
	"capture survives harmless calls":                      invalidateHarmless,
	"capture that is invalidated refuses all":              invalidateStays,
}

func invalidateSynchronize(s *suite) {
	st := s.stream()
	s.begin(st)
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s.CuStreamSynchronize(st))
	s.invalidated(st)
}

func invalidateQuery(s *suite) {
	st := s.stream()
	s.begin(st)
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s.CuStreamQuery(st))
	s.invalidated(st)
}

func invalidateEvent(s *suite) {
	st, e := s.stream(), s.event(driver.CU_EVENT_DISABLE_TIMING)
	s.begin(st)
	s.ok(s.CuEventRecord(e, st))
	s.code(driver.CUDA_ERROR_CAPTURED_EVENT, s.CuEventQuery(e))
	s.invalidated(st)
}

func invalidateEventWait(s *suite) {
	st, e := s.stream(), s.event(driver.CU_EVENT_DISABLE_TIMING)
	s.begin(st)
	s.ok(s.CuEventRecord(e, st))
	s.code(driver.CUDA_ERROR_CAPTURED_EVENT, s.CuEventSynchronize(e))
	s.invalidated(st)
}

// notRefused accepts what a query says on a busy GPU: there even an event that
// was recorded in an idle stream can be pending after the stream was
// synchronized (H200, driver 580.159, ten processes).
func notRefused(s *suite, r driver.CUresult, message ...any) {
	s.Helper()
	require.Contains(s.T, []driver.CUresult{driver.CUDA_SUCCESS, driver.CUDA_ERROR_NOT_READY}, r, message...)
}

// Another thread may record into a stream that captures, as long as the capture
// neither begins nor ends meanwhile: that would crash NVIDIA's driver.
func invalidateEventElsewhere(s *suite) {
	st, other := s.stream(), s.stream()
	destroyed, r := s.CuEventCreate(driver.CU_EVENT_DISABLE_TIMING)
	s.ok(r)
	moved := s.event(driver.CU_EVENT_DISABLE_TIMING)
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
	var results []driver.CUresult
	s.elsewhere(func() {
		old, _ := s.CuThreadExchangeStreamCaptureMode(driver.CU_STREAM_CAPTURE_MODE_RELAXED)
		results = append(results, s.CuEventRecord(destroyed, st), s.CuEventRecord(moved, st), s.CuEventDestroy(destroyed),
			s.CuEventRecord(moved, other), s.CuStreamSynchronize(other), s.CuEventQuery(moved))
		s.CuThreadExchangeStreamCaptureMode(old)
	})
	for i, r := range results {
		notRefused(s, r, "call %d", i)
	}
	g, r := s.CuStreamEndCapture(st)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(g) })
	list, r := s.CuGraphGetNodes(g)
	s.ok(r)
	require.Empty(s.T, list)
}

func invalidateEventLate(s *suite) {
	st, e := s.stream(), s.event(driver.CU_EVENT_DISABLE_TIMING)
	s.begin(st)
	s.ok(s.CuEventRecord(e, st))
	s.end(st)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuEventQuery(e))
	s.ok(s.CuEventRecord(e, st))
	s.ok(s.CuEventSynchronize(e))
	s.ok(s.CuEventQuery(e))
}

func invalidateGraphLaunch(s *suite) {
	st, x := s.stream(), s.instantiate(s.graph())
	s.begin(st)
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s.CuGraphLaunch(x, st))
	s.invalidated(st)
}

func invalidateContext(s *suite) {
	st := s.stream()
	s.begin(st)
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s.CuCtxSynchronize())
	s.invalidated(st)
}

func invalidateLegacy(s *suite) {
	p, st := s.word(0), s.streamWith(driver.CU_STREAM_DEFAULT)
	s.begin(st)
	_, r := s.CuStreamIsCapturing(0)
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, r)
	status, r := s.CuStreamIsCapturing(st)
	s.ok(r)
	require.Equal(s.T, driver.CU_STREAM_CAPTURE_STATUS_ACTIVE, status, "asking invalidates nothing")
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, s.CuMemsetD32Async(p, 1, 1, 0))
	s.invalidated(st)
	x := s.instantiate(s.graph())
	for name, call := range map[string]func() driver.CUresult{
		"launch":    func() driver.CUresult { return s.CuGraphLaunch(x, 0) },
		"upload":    func() driver.CUresult { return s.CuGraphUpload(x, 0) },
		"peer copy": func() driver.CUresult { return s.CuMemcpyPeerAsync(p, s.ctx, p, s.ctx, 4, 0) },
	} {
		s.begin(st)
		require.Equal(s.T, driver.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, call(), name)
		s.invalidated(st)
	}
}

// unsafeCalls are calls that a capture in global mode refuses.
func (s *suite) unsafeCalls() map[string]func() driver.CUresult {
	e, other := s.event(driver.CU_EVENT_DISABLE_TIMING), s.stream()
	pool, r := s.CuDeviceGetDefaultMemPool(s.dev)
	s.ok(r)
	return map[string]func() driver.CUresult{
		"event query":       func() driver.CUresult { return s.CuEventQuery(e) },
		"event synchronize": func() driver.CUresult { return s.CuEventSynchronize(e) },
		"stream query":      func() driver.CUresult { return s.CuStreamQuery(other) },
		"pool access": func() driver.CUresult {
			_, r := s.CuMemPoolGetAccess(pool, onDevice(s.dev))
			return r
		},
		"pool attribute": func() driver.CUresult {
			_, r := s.CuMemPoolGetAttribute(pool, driver.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
			return r
		},
		"pool access set": func() driver.CUresult {
			return s.CuMemPoolSetAccess(pool, []driver.CUmemAccessDesc{{Location: onDevice(s.dev), Flags: readWrite}})
		},
		"allocation": func() driver.CUresult {
			p, r := s.CuMemAlloc(16)
			if r == driver.CUDA_SUCCESS {
				s.CuMemFree(p)
			}
			return r
		},
		"stream-ordered allocation": func() driver.CUresult {
			p, r := s.CuMemAllocAsync(16, other)
			if r == driver.CUDA_SUCCESS {
				s.CuMemFreeAsync(p, other)
			}
			return r
		},
	}
}

func invalidateGlobal(s *suite) {
	for name, call := range s.unsafeCalls() {
		st := s.stream()
		s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
		require.Equal(s.T, driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, call(), name)
		s.invalidated(st)
	}
}

func invalidateRelaxed(s *suite) {
	st := s.stream()
	calls := s.unsafeCalls()
	s.begin(st)
	for name, call := range calls {
		notRefused(s, call(), name)
	}
	s.end(st)
}

// elsewhere makes calls on another thread, where the context is current.
func (s *suite) elsewhere(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		s.CuCtxPushCurrent(s.ctx)
		f()
		s.CuCtxPopCurrent()
	}()
	<-done
}

func invalidateThreadLocal(s *suite) {
	st := s.stream()
	calls := s.unsafeCalls()
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
	results := map[string]driver.CUresult{}
	s.elsewhere(func() {
		for name, call := range calls {
			results[name] = call()
		}
	})
	for name, r := range results {
		notRefused(s, r, name)
	}
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, calls["event query"]())
	s.invalidated(st)
}

func invalidateExchange(s *suite) {
	st := s.stream()
	calls := s.unsafeCalls()
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
	results := map[string]driver.CUresult{}
	s.elsewhere(func() {
		old, _ := s.CuThreadExchangeStreamCaptureMode(driver.CU_STREAM_CAPTURE_MODE_RELAXED)
		for name, call := range calls {
			results[name] = call()
		}
		s.CuThreadExchangeStreamCaptureMode(old)
	})
	for name, r := range results {
		notRefused(s, r, name)
	}
	s.end(st)
}

func invalidateHarmless(s *suite) {
	p, st, other := s.word(1), s.stream(), s.stream()
	step, e, x := s.kernel("step"), s.event(driver.CU_EVENT_DISABLE_TIMING), s.instantiate(s.graph())
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_GLOBAL))
	s.ok(s.CuEventRecord(e, other))
	s.ok(s.launch(other, step, p, uint32(2), uint32(0)))
	s.ok(s.CuGraphLaunch(x, other))
	made, r := s.CuEventCreate(0)
	s.ok(r)
	s.ok(s.CuEventDestroy(made))
	extra, r := s.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	s.ok(r)
	s.ok(s.CuStreamDestroy(extra))
	s.end(st)
	s.same(2, p)
}

func invalidateStays(s *suite) {
	p, st := s.word(1), s.stream()
	step := s.kernel("step")
	s.begin(st)
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, s.CuStreamSynchronize(st))
	s.code(driver.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, s.launch(st, step, p, uint32(2), uint32(0)))
	status, r := s.CuStreamIsCapturing(st)
	s.ok(r)
	require.Equal(s.T, driver.CU_STREAM_CAPTURE_STATUS_INVALIDATED, status)
	s.invalidated(st)
	s.ok(s.launch(st, step, p, uint32(2), uint32(0)))
	s.same(2, p)
}
