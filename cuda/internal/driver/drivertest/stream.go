// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var streams = map[string]func(*suite){
	"stream runs its work in order":                      streamOrder,
	"stream query tells busy from idle":                  streamQuery,
	"streams run concurrently":                           streamsConcurrent,
	"stream destroyed in flight completes":               streamDestroyed,
	"stream attributes":                                  streamAttributes,
	"default stream waits for blocking streams":          legacyWaits,
	"blocking stream waits for the default stream":       legacyAwaited,
	"non-blocking stream ignores the default stream":     legacyIgnored,
	"per-thread default stream waits for the legacy one": perThreadWaits,
	"stream refuses flags it does not know":              streamFlags,
}

func streamOrder(s *suite) {
	p, st, step := s.word(1), s.stream(), s.kernel("step")
	want := uint32(1)
	for i := range uint32(50) {
		s.ok(s.launch(st, step, p, uint32(3), i))
		want = want*3 + i
	}
	s.ok(s.CuStreamSynchronize(st))
	s.same(want, p)
}

func streamQuery(s *suite) {
	st := s.stream()
	s.ok(s.CuStreamQuery(st))
	gate := s.hold(st)
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(st))
	gate.open()
	s.ok(s.CuStreamSynchronize(st))
	s.ok(s.CuStreamQuery(st))
}

func streamsConcurrent(s *suite) {
	busy, free, p := s.stream(), s.stream(), s.word(0)
	gate := s.hold(busy)
	s.ok(s.launch(free, s.kernel("step"), p, uint32(0), uint32(5)))
	s.ok(s.CuStreamSynchronize(free))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(busy))
	gate.open()
	s.same(5, p)
}

func streamDestroyed(s *suite) {
	p := s.word(0)
	st, r := s.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	s.ok(r)
	gate := s.hold(st)
	s.ok(s.launch(st, s.kernel("step"), p, uint32(0), uint32(8)))
	s.ok(s.CuStreamDestroy(st))
	gate.open()
	s.same(8, p)
}

func streamAttributes(s *suite) {
	_, greatest, r := s.CuCtxGetStreamPriorityRange()
	s.ok(r)
	st, r := s.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, greatest)
	s.ok(r)
	priority, r := s.CuStreamGetPriority(st)
	s.ok(r)
	require.Equal(s.T, greatest, priority)
	flags, r := s.CuStreamGetFlags(st)
	s.ok(r)
	require.Equal(s.T, driver.CU_STREAM_NON_BLOCKING, flags)
	ctx, r := s.CuStreamGetCtx(st)
	s.ok(r)
	require.Equal(s.T, s.ctx, ctx)
	one, r := s.CuStreamGetId(st)
	s.ok(r)
	other, r := s.CuStreamGetId(s.stream())
	s.ok(r)
	require.NotEqual(s.T, one, other)
	s.ok(s.CuStreamDestroy(st))
	outside, r := s.CuStreamCreateWithPriority(driver.CU_STREAM_DEFAULT, -1000)
	s.ok(r)
	priority, r = s.CuStreamGetPriority(outside)
	s.ok(r)
	require.Equal(s.T, greatest, priority, "priorities are clamped")
	s.ok(s.CuStreamDestroy(outside))
}

func legacyWaits(s *suite) {
	p, blocking, step := s.word(1), s.streamWith(driver.CU_STREAM_DEFAULT), s.kernel("step")
	gate := s.hold(blocking)
	s.ok(s.launch(blocking, step, p, uint32(2), uint32(0)))
	s.ok(s.launch(0, step, p, uint32(1), uint32(5)))
	gate.open()
	s.same(7, p)
}

func legacyAwaited(s *suite) {
	p, blocking, step := s.word(1), s.streamWith(driver.CU_STREAM_DEFAULT), s.kernel("step")
	gate := s.hold(driver.CU_STREAM_LEGACY)
	s.ok(s.launch(0, step, p, uint32(2), uint32(0)))
	s.ok(s.launch(blocking, step, p, uint32(1), uint32(5)))
	gate.open()
	s.same(7, p)
}

func legacyIgnored(s *suite) {
	p, st := s.word(1), s.stream()
	gate := s.hold(driver.CU_STREAM_LEGACY)
	s.ok(s.launch(st, s.kernel("step"), p, uint32(1), uint32(5)))
	s.ok(s.CuStreamSynchronize(st))
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(0))
	gate.open()
	s.same(6, p)
}

func perThreadWaits(s *suite) {
	p, step := s.word(1), s.kernel("step")
	gate := s.hold(driver.CU_STREAM_LEGACY)
	s.ok(s.launch(0, step, p, uint32(2), uint32(0)))
	s.ok(s.launch(driver.CU_STREAM_PER_THREAD, step, p, uint32(1), uint32(5)))
	gate.open()
	s.ok(s.CuStreamSynchronize(driver.CU_STREAM_PER_THREAD))
	s.same(7, p)
}

func streamFlags(s *suite) {
	_, r := s.CuStreamCreateWithPriority(0x80, 0)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}
