// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/fault"
	"github.com/cudago/cudago/cuda/internal/driver/nvidia"
	"github.com/cudago/cudago/cuda/internal/driver/sim"
	"github.com/cudago/cudago/cuda/internal/driver/trace"
	"github.com/cudago/cudago/cuda/internal/nvjitlink"
	"github.com/cudago/cudago/cuda/internal/nvrtc"
	"github.com/cudago/cudago/cuda/internal/nvvm"
)

// Options are the options of [Open]. The zero value takes everything from the
// environment.
type Options struct {
	// Driver is "nvidia", "sim" or "auto". Empty means the environment variable
	// CUDAGO_DRIVER, or "auto" where that is empty too. "auto" takes NVIDIA's
	// driver where it opens and has a device, else the simulated one.
	Driver string
	// Sim configures the simulated driver, as "devices=2,memory=8GiB". Empty
	// means the environment variable CUDAGO_SIM.
	Sim string
	// CallHost calls the C function fn(userData) for host functions in streams
	// and graphs of the simulated driver, which has no cgo of its own. Nil makes
	// them an error there. NVIDIA's driver does not use it.
	CallHost func(fn, userData uintptr)

	// MostHostCalls is how many of these calls are under way at once, each on a
	// thread of its own. 0: as many as there are.
	MostHostCalls int
	// BeforeSim is called before the simulated driver is opened, whose kernels run
	// on as many threads as [runtime.GOMAXPROCS] then says. Nil does nothing.
	BeforeSim func()
	// NVRTCPaths are directories to look for NVRTC in, before the system's.
	NVRTCPaths []string
	// NVJitLinkPaths are directories to look for nvJitLink in, before the
	// system's.
	NVJitLinkPaths []string
	// NVVMPaths are directories to look for libnvvm in, before the system's.
	NVVMPaths []string
	// IsFrozen says that the program was frozen, as by PyInstaller: messages then do
	// not advise to install what it lacks.
	IsFrozen bool
	// Printf receives what kernels print on the simulated driver. Nil means
	// standard output.
	Printf io.Writer
	// Trace receives a line for every driver call. Nil means none.
	Trace io.Writer
	// LastCalls is a file for the last driver calls, the one under way included,
	// to be read after a crash. Empty means none.
	LastCalls string
	last      *trace.Last
}

// Open opens a CUDA driver and initializes it. It makes no context.
//
// Lifetime: the caller must Close the Driver.
//
// Errors: [*DriverNotFoundError] if the driver asked for cannot be opened or,
// for NVIDIA's, has no device; an [*ArgumentError] for an unknown choice.
func Open(o Options) (*Driver, error) {
	choice := o.Driver
	if choice == "" {
		choice = os.Getenv("CUDAGO_DRIVER")
	}
	if o.LastCalls != "" {
		var err error
		if o.last, err = trace.OpenLast(o.LastCalls); err != nil {
			return nil, badValue("CUDAGO_LAST_CALLS", "must be a file that can be written: %v", err)
		}
	}
	switch choice {
	case "nvidia":
		return openNVIDIA(o)
	case "sim":
		return openSim(o)
	case "", "auto":
		d, err := openNVIDIA(o)
		if err == nil {
			return d, nil
		}
		sim, simErr := openSim(o)
		if simErr != nil {
			return nil, simErr // wrong settings are reported before a missing driver
		}
		sim.notice = "using the simulated driver, because " + autoReason(err)
		return sim, nil
	}
	return nil, badValue("driver", `must be "nvidia", "sim" or "auto", got %q`, choice)
}

// autoReason says why NVIDIA's driver is unusable, as part of a sentence.
func autoReason(err error) string {
	var missing *DriverNotFoundError
	if errors.As(err, &missing) && missing.Reason != "" {
		first, _, _ := strings.Cut(missing.Reason, "\n")
		return first
	}
	return err.Error()
}

func openNVIDIA(o Options) (*Driver, error) {
	api, err := nvidia.Open(nvidia.Options{})
	if err != nil {
		return nil, notFound(err)
	}
	d, err := finishOpen(o, api, Cubin)
	if err != nil {
		return nil, &DriverNotFoundError{Reason: "NVIDIA's driver does not start: " + err.Error()}
	}
	if d.count == 0 {
		_ = d.Close() // the error that matters is the next one
		return nil, &DriverNotFoundError{Reason: "NVIDIA's driver has no device"}
	}
	return d, nil
}

// notFound turns nvidia.Open's errors into ours.
func notFound(err error) error {
	e := &DriverNotFoundError{Reason: err.Error()}
	var missing *nvidia.NotFoundError
	if errors.As(err, &missing) {
		e.Reason = "NVIDIA's driver library was not found"
		for i, a := range missing.Tried {
			e.Tried = append(e.Tried, a.Name)
			if i == 0 {
				e.Reason += ": " + a.Why
			}
		}
	}
	return e
}

// finishOpen wraps api as the options say and initializes it. kind is the kind
// of code that the driver runs.
func finishOpen(o Options, api driver.API, kind string) (*Driver, error) {
	if o.Trace != nil || o.last != nil {
		api = trace.New(api, o.Trace, o.last)
	}
	api = wrapForTest(api)
	d, err := newDriver(api)
	if err != nil {
		_ = api.Close()
		return nil, err
	}
	d.codeKind = kind
	d.compiler = sync.OnceValues(func() (nvrtc.Compiler, error) {
		return nvrtc.Open(nvrtc.Options{Paths: o.NVRTCPaths, IsFrozen: o.IsFrozen})
	})
	d.irCompiler = sync.OnceValues(func() (nvvm.Compiler, error) {
		return nvvm.Open(nvvm.Options{Paths: o.NVVMPaths, IsFrozen: o.IsFrozen})
	})
	d.linker = sync.OnceValues(func() (nvjitlink.Linker, error) {
		return nvjitlink.Open(nvjitlink.Options{Paths: o.NVJitLinkPaths, IsFrozen: o.IsFrozen})
	})
	return d, nil
}

// wrapForTest is replaced by the build tag cudagotest.
var wrapForTest = func(api driver.API) driver.API { return api }

func openSim(o Options) (*Driver, error) {
	if o.BeforeSim != nil {
		o.BeforeSim()
	}
	config := o.Sim
	if config == "" {
		config = os.Getenv("CUDAGO_SIM")
	}
	var callHost func(fn driver.CUhostFn, userData uintptr)
	if o.CallHost != nil {
		callHost = func(fn driver.CUhostFn, userData uintptr) { o.CallHost(uintptr(fn), userData) }
	}
	api, err := sim.Open(sim.Options{Config: config, CallHost: callHost, MostHostCalls: o.MostHostCalls, Printf: o.Printf})
	if err != nil {
		return nil, badValue("", "%v", err)
	}
	return finishOpen(o, withFaults(api), PTX)
}

// withFaults makes calls of a simulated driver fail if it is configured so.
func withFaults(api driver.API) driver.API {
	s, ok := api.(interface {
		Faults() (wanted bool, rate float64, seed uint64)
	})
	if !ok {
		return api
	}
	wanted, rate, seed := s.Faults()
	if !wanted {
		return api
	}
	d := fault.New(api)
	d.Seed(seed)
	d.FailAtRandom(rate)
	return d
}
