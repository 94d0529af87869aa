// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package native

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
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/api"
)

// version is what python/cudago/_version.py says; the build sets it.
var version = "0"

var versionC = sync.OnceValue(func() *C.char { return C.CString(version) })

//export cudagoVersion
func cudagoVersion() *C.char { return versionC() }

// The process has one driver, opened at first use. Read without the lock once
// it is there.
var (
	drv    atomic.Pointer[cuda.Driver]
	openMu sync.Mutex // guards opening; never held while Python is called
)

var errNotOpen = errors.New("BUG: the driver was not opened")

func init() {
	api.Use(api.Source{
		Open: func() (*cuda.Driver, error) {
			if d := drv.Load(); d != nil {
				return d, nil
			}
			return nil, errNotOpen
		},
		Encode:      encode,
		LiveObjects: liveObjects,
		LiveStreams: streams.len,
	})
}

// options come from _driver.py:_options.
type options struct {
	Driver string   `json:"driver"`
	Sim    string   `json:"sim"`
	NVRTC  []string `json:"nvrtc"`
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
		if drv.Load() != nil {
			return nil
		}
		co := cuda.Options{
			Driver: o.Driver, Sim: o.Sim, NVRTCPaths: o.NVRTC, LastCalls: o.Last, Printf: &printed,
			CallHost: func(fn, data uintptr) { C.cudago_call_host(C.uintptr_t(fn), C.uintptr_t(data)) },
		}
		if o.Trace {
			co.Trace = os.Stderr
		}
		d, err := cuda.Open(co)
		if err != nil {
			return err
		}
		d.OnWarning(reportAside)
		// To give back can wait for the device, and who ends a capture has the GIL.
		d.OnCaptureEnd(func() { reaper.Add(once(func() error { d.Drain(); return nil })) })
		graph.OnWarning(reportAside)
		drv.Store(d)
		return nil
	})
}

// reportAside is where an error goes that has no caller: any goroutine, no GIL.
// What a check has found, and told to the reaper, is for the next wait.
// After a fault that breaks a device for good every release on it fails too:
// that was reported when it happened.
func reportAside(err error) {
	if abandoned.hold(err) {
		return
	}
	var r cuda.Result
	if errors.Is(err, cuda.ErrLost) { // a reset has taken it, or is about to
		return
	}
	if errors.As(err, &r) && (r.Sticky() || r == cuda.ErrorDeinitialized || r == cuda.ErrorContextIsDestroyed) {
		return
	}
	fmt.Fprintln(os.Stderr, "cudago: error ignored:", err)
}

//export cudagoEntryPoint
func cudagoEntryPoint(name *C.char) C.uintptr_t {
	return C.uintptr_t(drv.Load().EntryPoint(C.GoString(name)))
}

// contextOf returns the primary context of a device.
func contextOf(ordinal C.int32_t) (*cuda.Context, error) {
	d := drv.Load()
	if d == nil {
		return nil, errNotOpen
	}
	dev, err := d.Device(int(ordinal))
	if err != nil {
		return nil, err
	}
	return dev.Context()
}

//export cudagoDeviceContext
func cudagoDeviceContext(ordinal C.int64_t, pageable *C.int32_t, st *C.cudago_status) (ctx C.uintptr_t) {
	guard(st, func() error {
		dev, err := drv.Load().Device(int(ordinal))
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

// liveObjects counts what cudago holds open, by kind.
func liveObjects() map[string]int {
	m := map[string]int{}
	add := func(kind string, n int) {
		if n != 0 {
			m[kind] += n
		}
	}
	add("Stream", openStreams())
	add("Event", events.len())
	add("ObjectCode", codes.len())
	add("MemoryResource", ownResources())
	add("Buffer", liveCells())
	add("Finalizer", finalizers.Len())
	for kind, n := range graph.Live() {
		if kind != "Bundle" {
			add(kind, n)
		}
	}
	return m
}

// liveCells counts allocations and foreign tensors that something holds.
func liveCells() int { return int(C.cudago_live_cells()) }
