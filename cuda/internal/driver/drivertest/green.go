// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var greens = map[string]func(*suite){
	"device's SMs are a resource":                     smsOfDevice,
	"SMs split into groups and a rest":                smsSplit,
	"more SMs than there are cannot be split off":     smsTooMany,
	"groups of one split make one green context":      greenOfGroups,
	"equal splits make equal groups":                  greenOfEqualSplits,
	"green context needs its flag":                    greenFlags,
	"kernels run on a stream of a green context":      greenLaunch,
	"a green context's streams need their flag":       greenStreamFlags,
	"events and captures on a green context's stream": greenCapture,
}

const smType = driver.CU_DEV_RESOURCE_TYPE_SM

// sms returns all SMs of the device, on drivers that have green contexts.
func (s *suite) sms() driver.CUdevResource {
	s.Helper()
	all, r := s.CuDeviceGetDevResource(s.dev, smType)
	if r == driver.CUDA_ERROR_NOT_SUPPORTED {
		s.Skip("the driver has no green contexts")
	}
	s.ok(r)
	return all
}

// split makes as many groups as there can be with n SMs each.
func (s *suite) split(n uint32) (groups []driver.CUdevResource, left driver.CUdevResource) {
	s.Helper()
	all := s.sms()
	count, _, r := s.CuDevSmResourceSplitByCount(nil, &all, 0, n)
	s.ok(r)
	groups = make([]driver.CUdevResource, count)
	made, left, r := s.CuDevSmResourceSplitByCount(groups, &all, 0, n)
	s.ok(r)
	require.Equal(s.T, count, made)
	return groups, left
}

// green makes a green context that is destroyed with the test, before what was
// made earlier.
func (s *suite) green(resources ...driver.CUdevResource) driver.CUgreenCtx {
	s.Helper()
	desc, r := s.CuDevResourceGenerateDesc(resources)
	s.ok(r)
	g, r := s.CuGreenCtxCreate(desc, s.dev, driver.CU_GREEN_CTX_DEFAULT_STREAM)
	s.ok(r)
	s.cleanup(func() { s.CuGreenCtxDestroy(g) })
	return g
}

func (s *suite) greenStream(g driver.CUgreenCtx) driver.CUstream {
	s.Helper()
	st, r := s.CuGreenCtxStreamCreate(g, driver.CU_STREAM_NON_BLOCKING, 0)
	if r == driver.CUDA_ERROR_NOT_SUPPORTED {
		s.Skip("the driver makes no streams of green contexts")
	}
	s.ok(r)
	s.cleanup(func() { s.CuStreamDestroy(st) })
	return st
}

func smsOfDevice(s *suite) {
	all := s.sms()
	n, r := s.CuDeviceGetAttribute(driver.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, s.dev)
	s.ok(r)
	require.Equal(s.T, smType, all.Type)
	require.EqualValues(s.T, n, all.SmCount)
	_, r = s.CuDeviceGetDevResource(s.dev, 99)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}

func smsSplit(s *suite) {
	all := s.sms()
	groups, left := s.split(2)
	require.NotEmpty(s.T, groups)
	sum := left.SmCount
	for _, g := range groups {
		require.Equal(s.T, smType, g.Type)
		require.Equal(s.T, groups[0].SmCount, g.SmCount)
		require.GreaterOrEqual(s.T, g.SmCount, uint32(2))
		sum += g.SmCount
	}
	require.Equal(s.T, all.SmCount, sum)

	one := make([]driver.CUdevResource, 1)
	made, left, r := s.CuDevSmResourceSplitByCount(one, &all, 0, 2)
	s.ok(r)
	require.EqualValues(s.T, 1, made)
	require.Equal(s.T, groups[0].SmCount, one[0].SmCount)
	require.Equal(s.T, all.SmCount-one[0].SmCount, left.SmCount)
}

func smsTooMany(s *suite) {
	all := s.sms()
	_, _, r := s.CuDevSmResourceSplitByCount(nil, &all, 0, all.SmCount+1)
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}

func greenOfGroups(s *suite) {
	groups, _ := s.split(2)
	if len(groups) < 2 {
		s.Skip("needs a device of several groups of SMs")
	}
	g := s.green(groups[0], groups[1])
	has, r := s.CuGreenCtxGetDevResource(g, smType)
	s.ok(r)
	require.Equal(s.T, groups[0].SmCount+groups[1].SmCount, has.SmCount)
}

func greenOfEqualSplits(s *suite) {
	groups, _ := s.split(2)
	others, _ := s.split(2)
	require.Equal(s.T, groups, others)
}

func greenFlags(s *suite) {
	groups, _ := s.split(2)
	desc, r := s.CuDevResourceGenerateDesc(groups[:1])
	s.ok(r)
	_, r = s.CuGreenCtxCreate(desc, s.dev, 0)
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

func greenStreamFlags(s *suite) {
	groups, _ := s.split(2)
	_, r := s.CuGreenCtxStreamCreate(s.green(groups[0]), driver.CU_STREAM_DEFAULT, 0)
	if r == driver.CUDA_ERROR_NOT_SUPPORTED {
		s.Skip("the driver makes no streams of green contexts")
	}
	s.code(driver.CUDA_ERROR_INVALID_VALUE, r)
}

// The kernel is of a module of the primary context, which is current.
func greenLaunch(s *suite) {
	groups, _ := s.split(2)
	st, p := s.greenStream(s.green(groups[0])), s.word(1)
	s.ok(s.launch(st, s.kernel("step"), p, uint32(3), uint32(4)))
	s.ok(s.CuStreamSynchronize(st))
	s.same(7, p)
	flags, r := s.CuStreamGetFlags(st)
	s.ok(r)
	require.Equal(s.T, driver.CU_STREAM_NON_BLOCKING, flags)
	s.ok(s.CuStreamQuery(st))
}

func greenCapture(s *suite) {
	groups, _ := s.split(2)
	st, other, p := s.greenStream(s.green(groups[0])), s.stream(), s.word(1)
	e := s.event(driver.CU_EVENT_DISABLE_TIMING)
	gate := s.hold(st)
	s.ok(s.launch(st, s.kernel("step"), p, uint32(3), uint32(4)))
	s.ok(s.CuEventRecord(e, st))
	s.ok(s.CuStreamWaitEvent(other, e, 0))
	s.ok(s.launch(other, s.kernel("step"), p, uint32(2), uint32(0)))
	gate.open()
	s.ok(s.CuStreamSynchronize(other))
	s.same(14, p)

	s.begin(st)
	s.ok(s.launch(st, s.kernel("step"), p, uint32(1), uint32(1)))
	g, r := s.CuStreamEndCapture(st)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(g) })
	exec := s.instantiate(g)
	s.ok(s.CuGraphLaunch(exec, other))
	s.ok(s.CuGraphLaunch(exec, st))
	s.ok(s.CuStreamSynchronize(other))
	s.ok(s.CuStreamSynchronize(st))
	s.same(16, p)
}
