// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func TestEnterRestoresTheCallersContext(t *testing.T) {
	stub, c := openStub(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const other driver.CUcontext = 0xAA
	stub.CuCtxPushCurrent(other)

	leave, err := c.Enter()
	require.NoError(t, err)
	inner, err := c.Enter()
	require.NoError(t, err)
	current, depth := stub.currentContext()
	require.Equal(t, stubContext, current)
	require.Equal(t, 2, depth, "entering again pushes nothing")
	inner()
	leave()
	current, _ = stub.currentContext()
	require.Equal(t, other, current)
}

func TestDoReturnsTheFunctionsError(t *testing.T) {
	stub, c := openStub(t)
	wrong := errors.New("wrong")
	require.Equal(t, wrong, c.Do(func() error {
		current, _ := stub.currentContext()
		require.Equal(t, stubContext, current)
		return wrong
	}))
}

func TestEnterAllocatesNothing(t *testing.T) {
	stub, c := openStub(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stub.CuCtxPushCurrent(stubContext)
	stub.calls = make([]string, 0, 1<<16) // the stub's own notes
	require.Zero(t, testing.AllocsPerRun(100, func() {
		leave, err := c.Enter()
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}))
}

func TestContextIsRetainedOnce(t *testing.T) {
	s := newStub()
	d, err := newDriver(s)
	require.NoError(t, err)
	dev, err := d.Device(1)
	require.NoError(t, err)
	contexts := make([]*Context, 8)
	var wg sync.WaitGroup
	for i := range contexts {
		wg.Go(func() {
			c, err := dev.Context()
			if err != nil {
				t.Error(err)
			}
			contexts[i] = c
		})
	}
	wg.Wait()
	for _, c := range contexts {
		require.Same(t, contexts[0], c)
	}
	require.Equal(t, 1, s.count("cuDevicePrimaryCtxRetain")-s.count("cuDevicePrimaryCtxRelease"))
	require.NoError(t, d.Close())
	require.Equal(t, s.count("cuDevicePrimaryCtxRetain"), s.count("cuDevicePrimaryCtxRelease"))
	require.Equal(t, 1, s.count("Close"))
}

// Of two first callers the one whose context is not kept has one all the same.
func TestSecondUseOfAContextThatStays(t *testing.T) {
	s := newStub()
	d, err := newDriver(s)
	require.NoError(t, err)
	var warnings []error
	d.OnWarning(func(err error) { warnings = append(warnings, err) })
	dev, err := d.Device(1)
	require.NoError(t, err)
	s.on = func(call string) driver.CUresult {
		switch call {
		case "cuDevicePrimaryCtxRetain":
			s.on = nil
			_, err := dev.Context() // another thread is quicker
			require.NoError(t, err)
			s.on = func(call string) driver.CUresult {
				if call == "cuDevicePrimaryCtxRelease" {
					return driver.CUDA_ERROR_UNKNOWN
				}
				return driver.CUDA_SUCCESS
			}
		}
		return driver.CUDA_SUCCESS
	}
	c, err := dev.Context()
	require.NoError(t, err)
	require.NotNil(t, c)
	require.Len(t, warnings, 1)
	require.ErrorIs(t, warnings[0], ErrorUnknown)
}

func TestClosedDriver(t *testing.T) {
	stub, c := openStub(t)
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, c.drv.Close())
	require.NoError(t, c.drv.Close(), "closing twice")
	_, err = c.dev.Context()
	require.ErrorIs(t, err, ErrClosed)
	_, err = c.drv.Device(0)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, s.Close(), "objects may be closed after their driver")
	require.Zero(t, stub.count("cuStreamDestroy"))
	require.Equal(t, 1, stub.count("Close"))
}

func TestDeviceOrdinals(t *testing.T) {
	_, c := openStub(t)
	d := c.drv
	first, err := d.Device(1)
	require.NoError(t, err)
	again, err := d.Device(1)
	require.NoError(t, err)
	require.Same(t, first, again)
	for _, ordinal := range []int{-1, 2} {
		_, err = d.Device(ordinal)
		var bad *ArgumentError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, WrongValue, bad.Kind)
		require.ErrorContains(t, err, "ordinal must be 0 to 1, got")
	}
}

// Relaxed mode is the thread's, and given back.
func TestRelaxed(t *testing.T) {
	_, c := openStub(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := c.drv.ExchangeCaptureMode(CaptureThreadLocal)
	require.NoError(t, err)
	require.Equal(t, CaptureGlobal, old)
	c.drv.Relaxed(func() {
		mode, err := c.drv.ExchangeCaptureMode(CaptureRelaxed)
		require.NoError(t, err)
		require.Equal(t, CaptureRelaxed, mode)
	})
	old, err = c.drv.ExchangeCaptureMode(CaptureGlobal)
	require.NoError(t, err)
	require.Equal(t, CaptureThreadLocal, old)
}

func TestStickyErrorCarriesTheReport(t *testing.T) {
	stub, c := openStub(t)
	stub.report = "kernel f, block (1, 0, 0), thread (2, 0, 0): read of 4 bytes at 0x10"
	stub.on = func(call string) driver.CUresult {
		if call == "cuCtxSynchronize" {
			return driver.CUDA_ERROR_ILLEGAL_ADDRESS
		}
		return driver.CUDA_SUCCESS
	}
	err := c.Synchronize()
	require.ErrorIs(t, err, ErrorIllegalAddress)
	require.ErrorContains(t, err, "("+stub.report+")")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Result.Sticky())
}
