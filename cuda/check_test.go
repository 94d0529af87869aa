// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func TestChecks(t *testing.T) {
	var trace bytes.Buffer
	c := openSimulated(t, Options{Trace: &trace}) // the checks are found behind a wrapper
	d := c.Driver()
	require.Equal(t, []string{"races", "uninitialized", "host"}, d.CheckNames())
	was, err := d.SetChecks("uninitialized")
	require.NoError(t, err)
	require.Empty(t, was)
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	defer s.Close()
	d.NoteSite("here.go:1")
	b := allocate(t, device(t, c), 64, s)
	host := make([]byte, 64)
	err = b.CopyToHost(host, s)
	require.ErrorIs(t, err, ErrorCheckFailed)
	require.False(t, ErrorCheckFailed.Sticky())
	require.Regexp(t, `^cuStreamSynchronize: CUDAGO_CHECK_FAILED: a check found a defect:\nuninitialized read in a copy of 64 bytes .* allocated at here\.go:1 `, err.Error())
	require.NoError(t, s.Synchronize())
	require.Len(t, d.TakeReports(), 1)
	require.Equal(t, "uninitialized", d.Checks())
	was, err = d.SetChecks("")
	require.NoError(t, err)
	require.Equal(t, "uninitialized", was)
	require.NoError(t, d.CancelKernels())
	require.Empty(t, d.InterruptKernels())
	d.HostAccess(uintptr(b.Ptr()), 64)

	_, err = d.SetChecks("leaks")
	var bad *ArgumentError
	require.ErrorAs(t, err, &bad)
}

func TestFindingThatAnotherCallWasTold(t *testing.T) {
	stub, c := openStub(t)
	s := newTestStream(t, c, StreamOptions{})
	e, err := c.NewEvent(EventOptions{})
	require.NoError(t, err)
	defer e.Close()
	require.NoError(t, s.Record(e))
	failing := ""
	stub.on = func(call string) driver.CUresult {
		if call == failing {
			return driver.CUDAGO_CHECK_FAILED // and the stub's report is empty
		}
		return driver.CUDA_SUCCESS
	}
	for call, wait := range map[string]func() error{
		"cuStreamSynchronize": s.Synchronize,
		"cuEventSynchronize":  e.Synchronize,
		"cuCtxSynchronize":    c.Synchronize,
		"cuStreamQuery": func() error {
			done, err := s.Done()
			require.True(t, done)
			return err
		},
	} {
		failing = call
		require.NoError(t, wait(), call)
	}
	failing = "cuEventRecord" // no wait: its work was not queued
	require.ErrorIs(t, s.Record(e), ErrorCheckFailed)
}

func TestDriverWithoutChecks(t *testing.T) {
	_, c := openStub(t)
	d := c.Driver()
	_, err := d.SetChecks("all")
	require.ErrorIs(t, err, ErrorNotSupported)
	require.ErrorIs(t, d.CancelKernels(), ErrorNotSupported)
	require.Empty(t, d.InterruptKernels())
	require.Empty(t, d.CheckNames())
	require.Empty(t, d.Checks())
	require.Empty(t, d.TakeReports())
	d.NoteSite("here")
	d.HostAccess(1, 2)
	c.NameNodes([]NodeHandle{1}, []string{"a"})
}
