// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// operations are what is tried with its 1st, 2nd, … driver call failing. What
// they make is closed by the caller.
func operations(t *testing.T, c *Context) map[string]func() (io.Closer, error) {
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	e, err := c.NewEvent(EventOptions{Timing: true})
	require.NoError(t, err)
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
	require.NoError(t, err)
	pinned, err := NewPinnedMemoryResource(c.dev)
	require.NoError(t, err)
	buf, err := mr.Allocate(8, s)
	require.NoError(t, err)
	code, err := ObjectCodeFrom(Cubin, []byte("code"))
	require.NoError(t, err)
	k, err := code.Kernel(c.dev, "one")
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, x := range []io.Closer{buf, mr, e, k, code, s} {
			require.NoError(t, x.Close())
		}
	})
	done := func(f func() error) func() (io.Closer, error) {
		return func() (io.Closer, error) { return nil, f() }
	}
	return map[string]func() (io.Closer, error){
		"new stream":         func() (io.Closer, error) { return c.NewStream(StreamOptions{}) },
		"new event":          func() (io.Closer, error) { return c.NewEvent(EventOptions{}) },
		"new pool":           func() (io.Closer, error) { return NewDeviceMemoryResource(c.dev, PoolOptions{}) },
		"allocate":           func() (io.Closer, error) { return mr.Allocate(16, s) },
		"allocate pinned":    func() (io.Closer, error) { return pinned.Allocate(16, s) },
		"synchronize":        done(s.Synchronize),
		"synchronize device": done(c.dev.Synchronize),
		"record":             done(func() error { return s.Record(e) }),
		"wait":               done(func() error { return s.Wait(e) }),
		"query stream":       done(func() error { _, err := s.Done(); return err }),
		"query event":        done(func() error { _, err := e.Query(); return err }),
		"elapsed":            done(func() error { _, err := e.ElapsedMS(e); return err }),
		"copy":               done(func() error { return buf.CopyFrom(buf, s) }),
		"copy from host":     done(func() error { return buf.CopyFromHost(make([]byte, 8), s) }),
		"fill":               done(func() error { return buf.Fill(1, 4, s) }),
		"load": func() (io.Closer, error) {
			code, err := ObjectCodeFrom(Cubin, []byte("code"))
			require.NoError(t, err)
			_, err = code.Load(c.dev)
			return code, err
		},
		"get kernel": func() (io.Closer, error) { return code.Kernel(c.dev, "one") },
		"launch": done(func() error {
			return Launch(s, LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1}}, k, buf, make([]byte, 12))
		}),
		"instantiate": func() (io.Closer, error) {
			x, err := c.Instantiate(1, 0)
			return execCloser{c, x}, err
		},
	}
}

type execCloser struct {
	c *Context
	x ExecHandle
}

func (e execCloser) Close() error { return e.c.ExecDestroy(e.x) }

// A call that fails has created nothing and left the thread as it was.
func TestFailedCallLeavesNothing(t *testing.T) {
	stub, c := openStub(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for name, operation := range operations(t, c) {
		t.Run(name, func(t *testing.T) {
			made, err := operation()
			require.NoError(t, err, "without a fault")
			closeMade(t, made)
			alive, live := stub.living(), c.drv.Live()
			failed := 0
			for n := 1; ; n++ {
				seen, at := 0, ""
				stub.on = func(call string) driver.CUresult {
					if releases(call) {
						return driver.CUDA_SUCCESS
					}
					if seen++; seen == n {
						at = call
						return driver.CUDA_ERROR_UNKNOWN
					}
					return driver.CUDA_SUCCESS
				}
				made, err := operation()
				stub.on = nil
				if at == "" {
					require.NoError(t, err)
					closeMade(t, made)
					break
				}
				failed++
				require.ErrorIs(t, err, ErrorUnknown, "call %d, %s", n, at)
				require.Equal(t, alive, stub.living(), "handles after %s failed", at)
				require.Equal(t, live, c.drv.Live(), "counts after %s failed", at)
				current, depth := stub.currentContext()
				require.Zero(t, current, "context after %s failed", at)
				require.Zero(t, depth)
			}
			require.NotZero(t, failed, "the operation called the driver")
		})
	}
}

func closeMade(t *testing.T, made io.Closer) {
	if made != nil {
		require.NoError(t, made.Close())
	}
}

// releases reports whether a failure of call has no caller who could be told.
func releases(call string) bool {
	return strings.Contains(call, "Destroy") || strings.Contains(call, "Free") || call == "cuModuleUnload" || call == "cuCtxPopCurrent" ||
		call == "AllowHost" || call == "DisallowHost"
}

// What the driver refuses to take back is told to OnWarning, once for a broken
// context, and stays in the counts.
func TestFailedReleaseWarns(t *testing.T) {
	stub, c := openStub(t)
	var warnings []string
	c.drv.OnWarning(func(err error) { warnings = append(warnings, err.Error()) })
	s, err := c.NewStream(StreamOptions{Name: "a"})
	require.NoError(t, err)
	e, err := c.NewEvent(EventOptions{})
	require.NoError(t, err)
	f, err := c.NewEvent(EventOptions{})
	require.NoError(t, err)

	code := driver.CUDA_ERROR_UNKNOWN
	stub.on = func(call string) driver.CUresult {
		if releases(call) {
			return code
		}
		return driver.CUDA_SUCCESS
	}
	require.NoError(t, s.Close())
	require.Equal(t, []string{`cannot release stream "a": cuStreamDestroy: CUDA_ERROR_UNKNOWN: an unknown error inside the driver`}, warnings)

	code = driver.CUDA_ERROR_LAUNCH_FAILED
	require.NoError(t, e.Close())
	require.NoError(t, f.Close())
	require.Len(t, warnings, 2, "the second release of a broken context is silent")
	require.Equal(t, map[string]int{"Stream": 1, "Event": 2}, c.drv.Live())
}
