// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package module

/*
#include "module.h"
*/
import "C"

import (
	"sync"

	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/api"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/finalizer"
	"github.com/cudago/cudago/pyext/kernel"
	"github.com/cudago/cudago/pyext/memory"
	"github.com/cudago/cudago/pyext/stream"
)

// version is that of python/cudago/_version.py; the build sets it.
var version = "0"

var versionC = sync.OnceValue(func() *C.char { return C.CString(version) })

//export cudagoVersion
func cudagoVersion() *C.char { return versionC() }

func init() {
	// Package graph fails on its own goroutines, and the border, which has a way
	// for such failures, does not know it.
	graph.OnWarning(border.ReportAside)
	api.Use(api.Source{Open: border.Open, Encode: border.Encode, LiveObjects: liveObjects, LiveStreams: stream.Streams.Len})
}

// liveObjects counts what cudago holds open, by kind.
func liveObjects() map[string]int {
	m := map[string]int{}
	add := func(kind string, n int) {
		if n != 0 {
			m[kind] += n
		}
	}
	add("Stream", stream.Open())
	add("Event", stream.Events.Len())
	add("ExternalMemory", memory.Externals.Len())
	add("ExternalSemaphore", stream.Semaphores.Len())
	add("GreenContext", stream.Greens.Len())
	add("ObjectCode", kernel.Codes.Len())
	add("MemoryResource", memory.OwnResources())
	arrays, mipmapped := memory.LiveArrays()
	add("OpaqueArray", arrays-mipmapped)
	add("MipmappedArray", mipmapped)
	add("Buffer", max(liveCells()-arrays, 0)) // an array has a cell too, but not at the same moment
	add("Finalizer", finalizer.Live())
	for kind, n := range graph.Live() {
		if kind != "Bundle" {
			add(kind, n)
		}
	}
	return m
}

// liveCells counts allocations and foreign tensors that something holds.
func liveCells() int { return int(C.cudago_live_cells()) }
