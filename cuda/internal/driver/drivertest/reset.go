// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var resets = map[string]func(*suite){
	"reset gives all memory back":                resetMemory,
	"reset leaves a device that works":           resetWorks,
	"reset of a device without a context":        resetIdle,
	"reset needs a device":                       resetBad,
	"reset mends what a fault broke":             resetFault,
	"reset stops what runs and drops what waits": resetRunning,
}

// reset resets the device and makes the context that there is afterwards the
// suite's. The handles from before must not be used any more.
func (s *suite) reset() {
	s.Helper()
	_, r := s.CuCtxPopCurrent()
	s.ok(r)
	s.gates = nil
	s.ok(s.CuDevicePrimaryCtxReset(s.dev))
	s.retainAgain()
}

// retainAgain is what a holder does whose context was reset.
func (s *suite) retainAgain() {
	s.Helper()
	s.resets++
	var r driver.CUresult
	s.ctx, r = s.CuDevicePrimaryCtxRetain(s.dev)
	s.ok(r)
	s.ok(s.CuDevicePrimaryCtxRelease(s.dev)) // as the holder from before
	s.ok(s.CuCtxPushCurrent(s.ctx))
	s.loadKernels()
}

func (s *suite) works() {
	s.Helper()
	p, st := s.word(1), s.stream()
	s.ok(s.launch(st, s.kernel("step"), p, uint32(2), uint32(3)))
	s.same(5, p)
	s.ok(s.CuCtxSynchronize())
}

func resetMemory(s *suite) {
	const size = 256 << 20
	before, _, r := s.CuMemGetInfo()
	s.ok(r)
	_, r = s.CuMemAlloc(size)
	s.ok(r)
	st, r := s.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	s.ok(r)
	_, r = s.CuMemAllocAsync(size, st)
	s.ok(r)
	s.reset()
	after, _, r := s.CuMemGetInfo()
	s.ok(r)
	require.Greater(s.T, after+size, before)
	s.works()
}

func resetWorks(s *suite) {
	s.works()
	s.reset()
	s.works()
	s.reset()
	s.works()
}

// resetIdle: whoever did not retain the context may reset it all the same.
func resetIdle(s *suite) {
	s.reset()
	_, r := s.CuCtxPopCurrent()
	s.ok(r)
	s.ok(s.CuDevicePrimaryCtxReset(s.dev))
	s.ok(s.CuDevicePrimaryCtxReset(s.dev))
	s.retainAgain()
	s.works()
}

func resetBad(s *suite) {
	s.code(driver.CUDA_ERROR_INVALID_DEVICE, s.CuDevicePrimaryCtxReset(-1))
	s.works()
}

func resetFault(s *suite) {
	s.needFaults()
	st := s.stream()
	s.ok(s.launch(st, s.kernel("step"), wild, uint32(1), uint32(1)))
	s.code(driver.CUDA_ERROR_ILLEGAL_ADDRESS, s.CuCtxSynchronize())
	s.reset()
	require.Empty(s.T, s.FaultReport(s.ctx))
	s.works()
}

// resetRunning needs a driver that can stop a kernel, as one that survives
// faults can.
func resetRunning(s *suite) {
	s.needFaults()
	st := s.stream()
	s.hold(st)
	s.hold(st)
	s.reset()
	s.works()
}
