// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/nvjitlink"
	"github.com/cudago/cudago/cuda/internal/nvrtc"
	"github.com/cudago/cudago/cuda/internal/nvvm"
)

// A Driver is an opened CUDA driver: NVIDIA's, or the simulated one. Get one
// from [Open].
//
// Safe for concurrent use, but for Close.
type Driver struct {
	api     driver.API
	checks  driver.Checker // nil if api has none
	version int
	notice  string
	count   int

	codeKind string                         // the kind of code that this driver runs: PTX or Cubin
	compiler func() (nvrtc.Compiler, error) // opened by the first call
	linker   func() (nvjitlink.Linker, error)

	irCompiler func() (nvvm.Compiler, error)

	onWarning atomic.Pointer[func(error)]
	live      liveCounts
	imports   imports
	captures  atomic.Int64 // number of open captures that this package began
	waits     contextWaits
	open      openCaptures // the same captures, if their numbers are known

	// capture keeps records of events apart from changes of captures: beginning
	// or ending a capture, or making a stream join one, locks it, and recording
	// an event read-locks it. NVIDIA's driver (580.159) crashes if one thread
	// records in a stream while another is inside cuStreamBeginCapture or
	// cuStreamEndCapture of it. One lock for all streams, since a capture ends
	// for all streams that have joined it. None of these calls blocks.
	capture      sync.RWMutex
	onCaptureEnd atomic.Pointer[func()]

	// related guards the state that a graph shares with its clones, with graphs
	// that embed it and with executables made of these, which NVIDIA's driver
	// (580.159) does not: it crashes if one thread destroys a graph or an
	// executable while another clones, embeds, instantiates or destroys a related
	// one. Destroying locks it, the other calls read-lock it. One lock for all
	// graphs, since only the driver knows the relations. Instantiating may wait
	// for the device; destroying a graph does not.
	related sync.RWMutex

	closed atomic.Bool

	mu      sync.Mutex
	devices []*Device // elements guarded by mu; nil until asked for
}

// newDriver initializes api and reads the facts that do not change.
func newDriver(api driver.API) (*Driver, error) {
	if err := check("cuInit", api.CuInit(0)); err != nil {
		return nil, err
	}
	version, r := api.CuDriverGetVersion()
	if err := check("cuDriverGetVersion", r); err != nil {
		return nil, err
	}
	count, r := api.CuDeviceGetCount()
	if err := check("cuDeviceGetCount", r); err != nil {
		return nil, err
	}
	return &Driver{
		api: api, checks: driver.CheckerOf(api), version: int(version), count: int(count), devices: make([]*Device, count),
	}, nil
}

// Name returns "nvidia" or "sim".
func (d *Driver) Name() string { return d.api.Name() }

// Version returns the CUDA version that the driver implements, as 12040 for
// 12.4.
func (d *Driver) Version() int { return d.version }

// Notice says in one sentence why "auto" chose the simulated driver. It is
// empty otherwise.
func (d *Driver) Notice() string { return d.notice }

// DeviceCount returns the number of devices.
func (d *Driver) DeviceCount() int { return d.count }

// Device returns the device with the given ordinal, the same pointer each time.
//
// Errors: an [*ArgumentError] if there is none; [ErrClosed] after Close.
func (d *Driver) Device(ordinal int) (*Device, error) {
	if ordinal < 0 || ordinal >= d.count {
		return nil, badValue("ordinal", "must be %s, got %d", d.ordinals(), ordinal)
	}
	if d.closed.Load() {
		return nil, &ClosedError{"driver"}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.devices[ordinal] == nil {
		h, r := d.api.CuDeviceGet(int32(ordinal))
		if err := check("cuDeviceGet", r); err != nil {
			return nil, err
		}
		d.devices[ordinal] = &Device{drv: d, ordinal: ordinal, h: h}
	}
	return d.devices[ordinal], nil
}

func (d *Driver) ordinals() string {
	switch d.count {
	case 0:
		return "that of a device, and there is none"
	case 1:
		return "0, the only device"
	}
	return fmt.Sprintf("0 to %d", d.count-1)
}

// EntryPoint returns the address of a C function with the ABI of the named
// driver call, such as "cuGraphLaunch", for callers in C. It is zero if this
// driver has none; the RawXxx methods then do the same.
func (d *Driver) EntryPoint(name string) uintptr { return d.api.EntryPoint(name) }

// AllowHost says that device work may access the size bytes of pageable host
// memory at p, until DisallowHost was called as often as AllowHost with the
// same range and readOnly, which says that it must not be written. Pinned and
// managed memory need no permission.
func (d *Driver) AllowHost(p uintptr, size uint64, readOnly bool) { d.api.AllowHost(p, size, readOnly) }

// DisallowHost undoes one AllowHost.
func (d *Driver) DisallowHost(p uintptr, size uint64, readOnly bool) {
	d.api.DisallowHost(p, size, readOnly)
}

// OnWarning sets the function that receives failures which no caller can: a
// free or a destroy that the driver refused. It may be called from any
// goroutine, and must not call back into d. Nil discards them.
func (d *Driver) OnWarning(f func(error)) {
	if f == nil {
		d.onWarning.Store(nil)
		return
	}
	d.onWarning.Store(&f)
}

// A ReleaseError is a failure to release an object.
type ReleaseError struct {
	// What was to be released, such as "stream".
	What string
	Err  error
}

// Error says what could not be released, and why.
func (e *ReleaseError) Error() string { return "cannot release " + e.What + ": " + e.Err.Error() }

// Unwrap returns e.Err.
func (e *ReleaseError) Unwrap() error { return e.Err }

func (d *Driver) warn(what string, err error) {
	if f := d.onWarning.Load(); f != nil {
		(*f)(&ReleaseError{what, err})
	}
}

// Drain calls [Context.Drain] for every context of d and returns the sum.
func (d *Driver) Drain() int {
	n := 0
	for _, c := range d.contexts() {
		n += c.Drain()
	}
	return n
}

// contexts returns the retained contexts.
func (d *Driver) contexts() []*Context {
	d.mu.Lock()
	devices := append([]*Device(nil), d.devices...)
	d.mu.Unlock()
	var cs []*Context
	for _, dev := range devices {
		if dev != nil {
			if c := dev.context.Load(); c != nil {
				cs = append(cs, c)
			}
		}
	}
	return cs
}

// Close releases the primary contexts that d retained, and the driver. No call
// may be running. Afterwards closing objects of d does nothing, and nothing
// else may be done with them. Closing twice is fine.
func (d *Driver) Close() error {
	d.Drain()
	if d.closed.Swap(true) {
		return nil
	}
	var first error
	for _, c := range d.contexts() {
		r := d.api.CuDevicePrimaryCtxRelease(c.dev.h)
		if err := check("cuDevicePrimaryCtxRelease", r); err != nil && first == nil {
			first = err
		}
	}
	if err := d.api.Close(); err != nil && first == nil {
		first = err
	}
	return first
}

// ExchangeCaptureMode sets the calling thread's capture mode and returns the
// previous one. The caller must hold the OS thread for as long as it relies on
// the mode. It calls cuThreadExchangeStreamCaptureMode.
func (d *Driver) ExchangeCaptureMode(mode CaptureMode) (CaptureMode, error) {
	old, r := d.api.CuThreadExchangeStreamCaptureMode(driver.CUstreamCaptureMode(mode))
	return CaptureMode(old), check("cuThreadExchangeStreamCaptureMode", r)
}

// Relaxed runs fn on a locked OS thread in relaxed capture mode, in which calls
// that captures of other threads would forbid are allowed and do not invalidate
// them.
func (d *Driver) Relaxed(fn func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	restore := d.relax()
	defer restore()
	fn()
}

// relax puts the calling thread into relaxed capture mode until restore.
//
// Preconditions: the goroutine is locked to its OS thread.
func (d *Driver) relax() (restore func()) {
	old, r := d.api.CuThreadExchangeStreamCaptureMode(driver.CU_STREAM_CAPTURE_MODE_RELAXED)
	if r != driver.CUDA_SUCCESS || old == driver.CU_STREAM_CAPTURE_MODE_RELAXED {
		return func() {}
	}
	return func() { d.api.CuThreadExchangeStreamCaptureMode(old) }
}
