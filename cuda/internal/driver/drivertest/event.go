// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var events = map[string]func(*suite){
	"event that was never recorded is complete":  eventFresh,
	"event completes with the work before it":    eventCompletes,
	"event orders two streams":                   eventOrders,
	"event wait takes the recording of its time": eventSnapshot,
	"event recorded again waits for the later":   eventAgain,
	"event times are ordered":                    eventTimes,
	"event times need timing":                    eventWithoutTiming,
	"event destroyed in flight still orders":     eventDestroyed,
}

func eventFresh(s *suite) {
	e, st := s.event(0), s.stream()
	s.ok(s.CuEventQuery(e))
	s.ok(s.CuEventSynchronize(e))
	s.ok(s.CuStreamWaitEvent(st, e, 0))
	s.ok(s.CuStreamSynchronize(st))
}

func eventCompletes(s *suite) {
	e, st := s.event(driver.CU_EVENT_DISABLE_TIMING), s.stream()
	gate := s.hold(st)
	s.ok(s.CuEventRecord(e, st))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuEventQuery(e))
	gate.open()
	s.ok(s.CuEventSynchronize(e))
	s.ok(s.CuEventQuery(e))
}

func eventOrders(s *suite) {
	p, a, b, step := s.word(1), s.stream(), s.stream(), s.kernel("step")
	e := s.event(driver.CU_EVENT_DISABLE_TIMING)
	gate := s.hold(a)
	s.ok(s.launch(a, step, p, uint32(2), uint32(0)))
	s.ok(s.CuEventRecord(e, a))
	s.ok(s.CuStreamWaitEvent(b, e, 0))
	s.ok(s.launch(b, step, p, uint32(1), uint32(5)))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(b))
	gate.open()
	s.ok(s.CuStreamSynchronize(b))
	s.same(7, p)
}

func eventSnapshot(s *suite) {
	a, b, c := s.stream(), s.stream(), s.stream()
	e := s.event(driver.CU_EVENT_DISABLE_TIMING)
	s.ok(s.CuEventRecord(e, a))
	s.ok(s.CuStreamWaitEvent(b, e, 0))
	gate := s.hold(c)
	s.ok(s.CuEventRecord(e, c))
	s.ok(s.CuStreamSynchronize(b))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuEventQuery(e))
	gate.open()
	s.ok(s.CuEventSynchronize(e))
}

func eventAgain(s *suite) {
	st := s.stream()
	e := s.event(driver.CU_EVENT_DISABLE_TIMING)
	s.ok(s.CuEventRecord(e, st))
	s.ok(s.CuEventSynchronize(e))
	gate := s.hold(st)
	s.ok(s.CuEventRecord(e, st))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuEventQuery(e))
	gate.open()
	s.ok(s.CuEventSynchronize(e))
}

func eventTimes(s *suite) {
	a, b, st := s.event(0), s.event(0), s.stream()
	_, r := s.CuEventElapsedTime(a, b)
	s.code(driver.CUDA_ERROR_INVALID_HANDLE, r)
	s.ok(s.CuEventRecord(a, st))
	gate := s.hold(st)
	s.ok(s.CuEventRecord(b, st))
	_, r = s.CuEventElapsedTime(a, b)
	s.code(driver.CUDA_ERROR_NOT_READY, r)
	gate.open()
	s.ok(s.CuEventSynchronize(b))
	ms, r := s.CuEventElapsedTime(a, b)
	s.ok(r)
	require.Positive(s.T, ms)
	back, r := s.CuEventElapsedTime(b, a)
	s.ok(r)
	require.InDelta(s.T, -ms, back, 1e-3)
}

func eventWithoutTiming(s *suite) {
	a, b, st := s.event(0), s.event(driver.CU_EVENT_DISABLE_TIMING), s.stream()
	s.ok(s.CuEventRecord(a, st))
	s.ok(s.CuEventRecord(b, st))
	s.ok(s.CuStreamSynchronize(st))
	_, r := s.CuEventElapsedTime(a, b)
	s.code(driver.CUDA_ERROR_INVALID_HANDLE, r)
}

func eventDestroyed(s *suite) {
	p, a, b, step := s.word(1), s.stream(), s.stream(), s.kernel("step")
	e, r := s.CuEventCreate(driver.CU_EVENT_DISABLE_TIMING)
	s.ok(r)
	gate := s.hold(a)
	s.ok(s.launch(a, step, p, uint32(2), uint32(0)))
	s.ok(s.CuEventRecord(e, a))
	s.ok(s.CuStreamWaitEvent(b, e, 0))
	s.ok(s.CuEventDestroy(e))
	s.ok(s.launch(b, step, p, uint32(1), uint32(5)))
	gate.open()
	s.same(7, p)
}
