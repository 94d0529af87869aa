// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include <stdlib.h>
#include "border.h"

*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda"
)

// The process has one driver, opened at first use. Once set it is read without
// the lock.
var (
	Driver atomic.Pointer[cuda.Driver]
	openMu sync.Mutex // guards opening; never held during a call into Python
)

var errNotOpen = errors.New("BUG: the driver was not opened")

// options come from _driver.py:_options.
type options struct {
	Driver string   `json:"driver"`
	Sim    string   `json:"sim"`
	NVRTC  []string `json:"nvrtc"`
	Link   []string `json:"nvjitlink"`
	NVVM   []string `json:"nvvm"`
	Frozen bool     `json:"frozen"`
	Trace  bool     `json:"trace"`
	Last   string   `json:"last"`
}

//export cudagoOpen
func cudagoOpen(text *C.char, st *C.cudago_status) {
	guard(st, func() error {
		var o options
		if err := json.Unmarshal([]byte(C.GoString(text)), &o); err != nil {
			return err
		}
		openMu.Lock()
		defer openMu.Unlock()
		if Driver.Load() != nil {
			return nil
		}
		co := cuda.Options{
			Driver: o.Driver, Sim: o.Sim, NVRTCPaths: o.NVRTC, NVJitLinkPaths: o.Link, NVVMPaths: o.NVVM,
			IsFrozen: o.Frozen, LastCalls: o.Last, Printf: &printed,
			BeforeSim: useAllProcessors,
			CallHost:  func(fn, data uintptr) { C.cudago_call_host(C.uintptr_t(fn), C.uintptr_t(data)) },
			// Python's run one after another anyway: see callback.c.
			MostHostCalls: spareThreads,
		}
		if o.Trace {
			co.Trace = os.Stderr
		}
		d, err := cuda.Open(co)
		if err != nil {
			return err
		}
		d.OnWarning(ReportAside)
		// Draining can wait for the device, and the thread that ends a capture
		// holds the GIL.
		d.OnCaptureEnd(postponed.Ask)
		Driver.Store(d)
		return nil
	})
}

// ReportAside takes errors that have no caller to go to. Any goroutine, no GIL.
// A check's finding that the reaper was told goes to the next wait. After a
// fault that breaks a device for good every release on it fails too; those
// errors are not reported, because the fault itself was.
func ReportAside(err error) {
	if abandoned.hold(err) {
		return
	}
	var r cuda.Result
	if errors.Is(err, cuda.ErrLost) { // a reset has destroyed it, or is about to
		return
	}
	if errors.As(err, &r) && (r.Sticky() || r == cuda.ErrorDeinitialized || r == cuda.ErrorContextIsDestroyed) {
		return
	}
	fmt.Fprintln(os.Stderr, "cudago: error ignored:", err)
}

//export cudagoEntryPoint
func cudagoEntryPoint(name *C.char) C.uintptr_t {
	return C.uintptr_t(Driver.Load().EntryPoint(C.GoString(name)))
}

// Open returns the driver.
func Open() (*cuda.Driver, error) {
	if d := Driver.Load(); d != nil {
		return d, nil
	}
	return nil, errNotOpen
}

// ContextOf returns the primary context of a device.
func ContextOf(ordinal int) (*cuda.Context, error) {
	d, err := Open()
	if err != nil {
		return nil, err
	}
	dev, err := d.Device(ordinal)
	if err != nil {
		return nil, err
	}
	return dev.Context()
}

//export cudagoDeviceContext
func cudagoDeviceContext(ordinal C.int64_t, pageable *C.int32_t, st *C.cudago_status) (ctx C.uintptr_t) {
	guard(st, func() error {
		dev, err := Driver.Load().Device(int(ordinal))
		if err != nil {
			return err
		}
		c, err := dev.Context()
		if err != nil {
			return err
		}
		reads, err := dev.Attribute(cuda.PageableMemoryAccess)
		if err != nil {
			return err
		}
		ctx, *pageable = C.uintptr_t(c.Handle()), C.int32_t(reads)
		return nil
	})
	return ctx
}
