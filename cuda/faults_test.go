// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"io"
	"iter"
	"maps"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/fault"
)

// fixture is what the operations need of a driver.
type fixture struct {
	kind, code, kernel string
	args               []any // after a buffer
	graph              GraphHandle
	host               uint64 // address of 64 bytes that the driver does not know
}

// operations are what is tried with its 1st, 2nd, … driver call failing. What
// they make is closed by the caller.
func operations(t *testing.T, c *Context, f fixture) map[string]func() (io.Closer, error) {
	s, err := c.NewStream(StreamOptions{})
	require.NoError(t, err)
	e, err := c.NewEvent(EventOptions{})
	require.NoError(t, err)
	timed, err := c.NewEvent(EventOptions{Timing: true})
	require.NoError(t, err)
	require.NoError(t, s.Record(timed))
	require.NoError(t, timed.Synchronize())
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{})
	require.NoError(t, err)
	pinned, err := NewPinnedMemoryResource(c.dev)
	require.NoError(t, err)
	peer, err := c.drv.Device(1)
	require.NoError(t, err)
	_, err = peer.Context()
	require.NoError(t, err)
	unified, err := NewManagedMemoryResource(c.dev)
	require.NoError(t, err)
	managed, err := unified.Allocate(64, nil)
	require.NoError(t, err)
	buf, err := mr.Allocate(8, s)
	require.NoError(t, err)
	code, err := ObjectCodeFrom(f.kind, []byte(f.code))
	require.NoError(t, err)
	k, err := code.Kernel(c.dev, f.kernel)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, x := range []io.Closer{buf, managed, mr, e, timed, k, code, s} {
			require.NoError(t, x.Close())
		}
	})
	words, err := pinned.Allocate(16, s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, words.Close()) })
	done := func(f func() error) func() (io.Closer, error) {
		return func() (io.Closer, error) { return nil, f() }
	}
	all := map[string]func() (io.Closer, error){
		"allocate":             func() (io.Closer, error) { return mr.Allocate(16, s) },
		"allocate pinned":      func() (io.Closer, error) { return pinned.Allocate(16, s) },
		"register host":        func() (io.Closer, error) { return c.RegisterHost(HostRegistration{Ptr: f.host, Size: 64}) },
		"advise":               done(func() error { return managed.Advise(SetPreferredLocation, Location{c.dev}) }),
		"prefetch":             done(func() error { return managed.Prefetch(Location{}, s) }),
		"range attributes":     done(func() error { _, err := managed.RangeAttributes(); return err }),
		"enable peer access":   done(func() error { return c.dev.EnablePeerAccess(peer) }),
		"disable peer access":  done(func() error { return c.dev.DisablePeerAccess(peer) }),
		"get buffer id":        done(func() error { _, err := c.BufferID(buf.Ptr()); return err }),
		"get limit":            done(func() error { _, err := c.dev.Limit(StackSize); return err }),
		"set limit":            done(func() error { return c.dev.SetLimit(StackSize, 2048) }),
		"start profiler":       done(c.dev.StartProfiler),
		"stop profiler":        done(c.dev.StopProfiler),
		"set peer access":      done(func() error { return mr.SetPeerAccess(peer, true) }),
		"get peer access":      done(func() error { _, err := mr.PeerAccess(peer); return err }),
		"synchronize":          done(s.Synchronize),
		"synchronize device":   done(c.dev.Synchronize),
		"record":               done(func() error { return s.Record(e) }),
		"wait":                 done(func() error { return s.Wait(e) }),
		"query event":          done(func() error { _, err := e.Query(); return err }),
		"elapsed":              done(func() error { _, err := timed.ElapsedMS(timed); return err }),
		"copy":                 done(func() error { return buf.CopyFrom(buf, s) }),
		"copy between devices": done(func() error { return MemcpyPeer(buf.Ptr(), c, buf.Ptr(), c, 8, s) }),
		"copy batch": done(func() error {
			p := buf.Ptr()
			return MemcpyBatch(batchOf([3]uint64{p, p + 4, 2}, [3]uint64{p + 2, p + 6, 2}), false, s)
		}),
		"prefetch batch": done(func() error {
			p := managed.Ptr()
			return PrefetchBatch([]BatchPrefetch{{p, 32, Location{c.dev}}, {p + 32, 32, Location{}}}, s)
		}),
		"copy rows": done(func() error {
			two := Pitch{Row: 4, Rows: 2}
			return Memcpy3D(MemcpyParams{Dst: buf.Ptr(), Src: buf.Ptr(), Size: 4, Box: Box{Rows: 2, Slices: 1, Dst: two, Src: two}}, s)
		}),
		"copy from host": done(func() error { return buf.CopyFromHost(make([]byte, 8), s) }),
		"fill":           done(func() error { return buf.Fill(1, 4, s) }),
		"write value":    done(func() error { return MemOp(MemOpParams{Ptr: words.Ptr(), Width: 4, Value: 1}, s) }),
		"wait for value": done(func() error {
			return MemOp(MemOpParams{Ptr: words.Ptr(), Width: 8, IsWait: true, Condition: WaitNor}, s)
		}),
		"load": func() (io.Closer, error) {
			code, err := ObjectCodeFrom(f.kind, []byte(f.code))
			require.NoError(t, err)
			_, err = code.Load(c.dev)
			return code, err
		},
		"get kernel":  func() (io.Closer, error) { return code.Kernel(c.dev, f.kernel) },
		"load kernel": done(k.Load),
		"launch": done(func() error {
			return Launch(s, LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1}}, k, append([]any{buf}, f.args...)...)
		}),
		"instantiate": func() (io.Closer, error) {
			x, err := c.Instantiate(f.graph, 0)
			return execCloser{c, x}, err
		},
	}
	maps.Copy(all, creations(c))
	maps.Copy(all, questions(c, s))
	return all
}

// questions are about a stream.
func questions(c *Context, s *Stream) map[string]func() (io.Closer, error) {
	return map[string]func() (io.Closer, error){
		"query stream":   func() (io.Closer, error) { _, err := s.Done(); return nil, err },
		"stream device":  func() (io.Closer, error) { _, err := c.drv.StreamDevice(s.Handle()); return nil, err },
		"context device": func() (io.Closer, error) { _, err := c.drv.contextDevice(c.h); return nil, err },
	}
}

// creations are operations that need a context alone.
func creations(c *Context) map[string]func() (io.Closer, error) {
	return map[string]func() (io.Closer, error){
		"graph memory":      func() (io.Closer, error) { _, err := c.dev.GraphMemory(); return nil, err },
		"trim memory":       func() (io.Closer, error) { return nil, c.dev.TrimGraphMemory() },
		"reset maxima":      func() (io.Closer, error) { return nil, c.dev.ResetGraphMemoryHigh() },
		"new stream":        func() (io.Closer, error) { return c.NewStream(StreamOptions{}) },
		"new event":         func() (io.Closer, error) { return c.NewEvent(EventOptions{}) },
		"new pool":          func() (io.Closer, error) { return NewDeviceMemoryResource(c.dev, PoolOptions{}) },
		"new pinned pool":   func() (io.Closer, error) { return NewPinnedPool(c.dev, PoolOptions{}, nil) },
		"new managed pool":  func() (io.Closer, error) { return NewManagedPool(c.dev, PoolOptions{}) },
		"encode tensor map": func() (io.Closer, error) { _, err := c.EncodeTensorMap(sampleMap()); return nil, err },
		"encode columns": func() (io.Closer, error) {
			p := sampleMap()
			p.Dims, p.Strides, p.Box, p.Steps = []uint64{64, 8, 2}, []uint64{256, 2048}, []uint32{1, 1, 1}, []uint32{1, 1, 1}
			p.Columns = &TensorMapColumns{Lower: []int32{0}, Upper: []int32{0}, Channels: 16, Pixels: 8}
			_, err := c.EncodeTensorMap(p)
			return nil, err
		},
		"encode wide columns": func() (io.Closer, error) {
			p := sampleMap()
			p.Dims, p.Strides, p.Box, p.Steps = []uint64{64, 8, 2}, []uint64{256, 2048}, []uint32{1, 1, 1}, []uint32{1, 1, 1}
			p.Swizzle = 2 // of 64 bytes
			p.Columns = &TensorMapColumns{Lower: []int32{0}, Upper: []int32{0}, Channels: 16, Pixels: 8, Wide: true}
			_, err := c.EncodeTensorMap(p)
			return nil, err
		},
		"new array": func() (io.Closer, error) {
			return c.NewArray(ArrayParams{Width: 4, Height: 4, Format: 0x20, Channels: 1, Surfaces: true})
		},
		"new surface": func() (io.Closer, error) {
			a, err := c.NewArray(ArrayParams{Width: 4, Height: 4, Format: 0x20, Channels: 1, Surfaces: true})
			if err != nil {
				return nil, err
			}
			s, err := c.NewSurface(a.Handle())
			if err != nil {
				return nil, errors.Join(err, a.Close())
			}
			return surfaceOfItsOwn{s, a}, nil
		},
		"new mipmapped array": func() (io.Closer, error) {
			return c.NewMipmappedArray(ArrayParams{Width: 4, Height: 4, Format: 0x20, Channels: 1}, 3)
		},
		"level of a mipmapped array": func() (io.Closer, error) {
			m, err := c.NewMipmappedArray(ArrayParams{Width: 4, Height: 4, Format: 0x20, Channels: 1}, 3)
			if err != nil {
				return nil, err
			}
			if _, err := m.Level(2); err != nil {
				return nil, errors.Join(err, m.Close())
			}
			return m, nil
		},
		"new texture": func() (io.Closer, error) {
			return c.NewTexture(TextureParams{Ptr: 1 << 20, Format: 0x20, Channels: 1, Width: 8, Pitch: 32})
		},
	}
}

type surfaceOfItsOwn struct {
	s *Surface
	a *Array
}

func (s surfaceOfItsOwn) Close() error { return errors.Join(s.s.Close(), s.a.Close()) }

type execCloser struct {
	c *Context
	x ExecHandle
}

func (e execCloser) Close() error { return e.c.ExecDestroy(e.x) }

// failEach runs an operation with each of its driver calls failing in turn, and
// after each has leftovers look for what was left.
func failEach(t *testing.T, d *fault.Driver, operation func() (io.Closer, error), leftovers func(t *testing.T, call string)) {
	// The current context belongs to the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	made, err := operation() // what is asked once is known from here on
	require.NoError(t, err, "without a fault")
	closeMade(t, made)
	leftovers(t, "nothing")
	before := map[string]int{}
	for call := range seamCalls() {
		before[call] = d.Calls(call)
	}
	made, err = operation()
	require.NoError(t, err, "without a fault")
	calls := map[string]int{}
	for call := range seamCalls() {
		calls[call] = d.Calls(call) - before[call]
	}
	closeMade(t, made)
	failed := 0
	for call, n := range calls {
		for i := 1; i <= n; i++ {
			d.Fail(call, i, driver.CUDA_ERROR_UNKNOWN)
			made, err := operation()
			require.False(t, d.Clear(), "%s was called again", call)
			if restores(call) {
				require.NoError(t, err, "%s only restores the thread", call)
				closeMade(t, made)
				// Else the thread stays as it is, and later attempts make fewer calls.
				_, r := d.CuThreadExchangeStreamCaptureMode(driver.CU_STREAM_CAPTURE_MODE_GLOBAL)
				require.Equal(t, driver.CUDA_SUCCESS, r)
			} else {
				require.ErrorIs(t, err, ErrorUnknown, "%s, call %d", call, i)
				failed++
			}
			leftovers(t, call)
		}
	}
	require.NotZero(t, failed, "the operation calls the driver")
}

// seamCalls yields the names of the driver calls of the seam.
func seamCalls() iter.Seq[string] {
	return func(yield func(string) bool) {
		api := reflect.TypeFor[driver.API]()
		for i := range api.NumMethod() {
			if name := api.Method(i).Name; strings.HasPrefix(name, "Cu") && !yield(name) {
				return
			}
		}
	}
}

// restores reports whether a call only puts the thread back as it was, or into
// a mode that the operation can do without: its failure concerns no caller.
func restores(call string) bool {
	return call == "CuCtxPopCurrent" || call == "CuThreadExchangeStreamCaptureMode"
}

// A call that fails has created nothing and left the thread as it was.
func TestFailedCallLeavesNothing(t *testing.T) {
	stub, c := openStub(t)
	faults := fault.New(stub)
	c.drv.api = faults
	for name, operation := range operations(t, c, fixture{kind: Cubin, code: "code", kernel: "one", args: []any{make([]byte, 12)}, graph: 1, host: 0x70000}) {
		t.Run(name, func(t *testing.T) {
			alive, live := stub.living()-c.nParked(), c.drv.Live()
			failEach(t, faults, operation, func(t *testing.T, call string) {
				require.Equal(t, alive, stub.living()-c.nParked(), "handles after %s failed", call)
				require.Equal(t, live, c.drv.Live(), "counts after %s failed", call)
				current, depth := stub.currentContext()
				require.Zero(t, current, "context after %s failed", call)
				require.Zero(t, depth)
			})
		})
	}
}

// openFaulty opens the simulated driver behind one that fails calls.
func openFaulty(t *testing.T) (faults *fault.Driver, c *Context) {
	t.Helper()
	wrap := wrapForTest
	wrapForTest = func(api driver.API) driver.API {
		faults = fault.New(api)
		return faults
	}
	defer func() { wrapForTest = wrap }()
	c = openSimulated(t, Options{Sim: "devices=2", CallHost: func(fn, userData uintptr) {}})
	return faults, c
}

// The same where the calls mean something.
func TestFailedCallLeavesNothingOnTheSimulatedDriver(t *testing.T) {
	faults, c := openFaulty(t)
	g, err := c.GraphCreate()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.GraphDestroy(g)) })
	all := operations(t, c, fixture{kind: PTX, code: kernelsPTX, kernel: "poke", graph: g, host: hostMemory(t, 64)})
	maps.Copy(all, graphOperations(c, g))
	maps.Copy(all, kernelOperations(t, c, g))
	maps.Copy(all, greenOperations(t, c))
	maps.Copy(all, sharedOperations(t, c))
	maps.Copy(all, externalOperations(t, c, g))
	for name, operation := range all {
		t.Run(name, func(t *testing.T) {
			live := c.drv.Live()
			failEach(t, faults, operation, func(t *testing.T, call string) {
				require.Equal(t, live, c.drv.Live(), "counts after %s failed", call)
				current, _ := faults.CuCtxGetCurrent()
				require.Zero(t, current, "context after %s failed", call)
				nodes, err := c.GraphNodes(g)
				require.NoError(t, err)
				require.Empty(t, nodes, "nodes after %s failed", call)
			})
		})
	}
}

// graphOperations add nodes to g, which are destroyed by closing them.
func graphOperations(c *Context, g GraphHandle) map[string]func() (io.Closer, error) {
	node := func(add func() (NodeHandle, error)) func() (io.Closer, error) {
		return func() (io.Closer, error) {
			n, err := add()
			return nodeCloser{c, n}, err
		}
	}
	return map[string]func() (io.Closer, error){
		"add empty node": node(func() (NodeHandle, error) { return c.AddEmptyNode(g, nil) }),
		"add host node":  node(func() (NodeHandle, error) { return c.AddHostNode(g, nil, &HostParams{Fn: 1}) }),
		"clone": func() (io.Closer, error) {
			clone, err := c.GraphClone(g)
			return graphCloser{c, clone}, err
		},
	}
}

type nodeCloser struct {
	c *Context
	n NodeHandle
}

func (n nodeCloser) Close() error { return n.c.DestroyNode(n.n) }

type graphCloser struct {
	c *Context
	g GraphHandle
}

func (g graphCloser) Close() error { return g.c.GraphDestroy(g.g) }

func closeMade(t *testing.T, made io.Closer) {
	if made != nil {
		require.NoError(t, made.Close())
	}
}

// releases reports whether a failure of call has no caller to report it to.
func releases(call string) bool {
	return strings.Contains(call, "Destroy") || strings.Contains(call, "Free") || call == "cuModuleUnload" || call == "cuCtxPopCurrent" ||
		call == "AllowHost" || call == "DisallowHost"
}

// What the driver refuses to take back is reported to OnWarning, once for a broken
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
