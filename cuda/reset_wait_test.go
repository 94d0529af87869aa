// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// spinPTX has spin(), which never ends.
const spinPTX = `.version 7.0
.target sm_75
.address_size 64
.visible .entry spin()
{
again:
	bra again;
}
`

// A call that waits forever ends with an error, before anything is taken away.
func TestResetEndsAWait(t *testing.T) {
	c, _ := openHostile(t, "1")
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	code, err := ObjectCodeFrom(PTX, []byte(spinPTX))
	require.NoError(t, err)
	spin, err := code.Kernel(c.dev, "spin")
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, Launch(s, one(), spin))
	}
	waited := make(chan error)
	go func() { waited <- s.Synchronize() }()
	for !c.calls.inUse() {
		time.Sleep(100 * time.Microsecond)
	}
	require.NoError(t, c.dev.Reset())
	require.Error(t, <-waited)
	requireWorks(t, c.dev)

	again, err := code.Kernel(c.dev, "spin")
	require.NoError(t, err, "the code is loaded anew")
	for _, o := range []io.Closer{again, spin, code, s} {
		require.NoError(t, o.Close())
	}
}

// A driver that cannot stop work is waited for: it would go on after the reset.
func TestResetWaitsForWork(t *testing.T) {
	stub, c := openStub(t)
	waits, goOn := make(chan struct{}, 2), make(chan struct{})
	stub.on = func(call string) driver.CUresult {
		if call == "cuCtxSynchronize" {
			waits <- struct{}{}
			<-goOn
		}
		return driver.CUDA_SUCCESS
	}
	stop, result := make(chan struct{}), make(chan error, 1)
	go func() { result <- c.dev.ResetUnless(stop) }()
	<-waits
	close(stop)
	require.ErrorIs(t, <-result, ErrStopped)
	require.False(t, c.IsLost())

	// The next one waits for that wait, and again: there may be new work.
	go func() { result <- c.dev.Reset() }()
	for !c.IsLost() {
		time.Sleep(100 * time.Microsecond)
	}
	goOn <- struct{}{}
	<-waits
	require.Zero(t, stub.count("cuDevicePrimaryCtxRelease"))
	goOn <- struct{}{}
	require.NoError(t, <-result)
	require.Equal(t, 1, stub.count("cuDevicePrimaryCtxRelease"))
}

func TestResetAfterAWaitThatFailed(t *testing.T) {
	stub, c := openStub(t)
	stub.on = func(call string) driver.CUresult {
		if call == "cuCtxSynchronize" {
			return driver.CUDA_ERROR_OUT_OF_MEMORY
		}
		return driver.CUDA_SUCCESS
	}
	require.ErrorIs(t, c.dev.Reset(), ErrorOutOfMemory)
	require.False(t, c.IsLost())
	require.Zero(t, stub.count("cuDevicePrimaryCtxRelease"))
}

func TestResetBesideUse(t *testing.T) {
	c, warnings := openHostile(t, "2")
	dev, drv := c.dev, c.drv
	done := make(chan struct{})
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					useAll(dev)
				}
			}
		})
	}
	for range 20 {
		require.NoError(t, dev.Reset())
		time.Sleep(2 * time.Millisecond)
	}
	close(done)
	users.Wait()
	requireWorks(t, dev)
	require.Zero(t, drv.Drain())
	for _, err := range warnings() {
		t.Error(err)
	}
}

// useAll does a bit of everything, which ends early where something is lost.
func useAll(dev *Device) {
	c, err := dev.Context()
	if err != nil {
		return
	}
	s, err := c.NewStream(StreamOptions{})
	if err != nil {
		return
	}
	defer s.Close()
	e, err := c.NewEvent(EventOptions{})
	if err != nil {
		return
	}
	defer e.Close()
	mr, err := dev.DefaultMemoryResource()
	if err != nil {
		return
	}
	b, err := mr.Allocate(64, s)
	if err != nil {
		return
	}
	defer b.Close()
	_ = b.Fill(1, 1, s)
	code, _ := ObjectCodeFrom(PTX, []byte(kernelsPTX))
	defer code.Close()
	if k, err := code.Kernel(dev, "poke"); err == nil {
		defer k.Close()
		_ = Launch(s, one(), k, b)
	}
	if g, err := c.GraphCreate(); err == nil {
		if x, err := c.Instantiate(g, 0); err == nil {
			_ = c.ExecLaunch(x, s)
			_ = c.ExecDestroy(x)
		}
		_ = c.GraphDestroy(g)
	}
	_ = s.Record(e)
	_ = c.DefaultStream(Legacy).Wait(e)
	_ = e.Synchronize()
	_ = s.Synchronize()
	_ = dev.Synchronize()
}

// A reset that is given up while it waits for calls has not begun.
func TestResetUnless(t *testing.T) {
	c, warnings := openHostile(t, "1")
	objects := makeObjects(t, c)
	leave, err := c.Enter()
	require.NoError(t, err)
	stop, result := make(chan struct{}), make(chan error, 1)
	go func() { result <- c.dev.ResetUnless(stop) }()
	for !c.IsLost() {
		time.Sleep(100 * time.Microsecond)
	}
	err = c.Synchronize()
	require.ErrorIs(t, err, ErrLost)
	require.ErrorContains(t, err, "device 0 is being reset")
	require.NotErrorIs(t, err, ErrorContextIsDestroyed, "it may be given up")
	close(stop)
	require.ErrorIs(t, <-result, ErrStopped)
	leave()
	require.False(t, c.IsLost())
	requireWorks(t, c.dev)
	require.NoError(t, c.dev.ResetUnless(nil))
	objects.requireLost(t)
	requireWorks(t, c.dev)
	require.Empty(t, warnings())
}
