// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import (
	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/graph"
	"github.com/cudago/cudago/pyext/stream"
)

//export cudagoLaunchHost
func cudagoLaunchHost(on C.uint64_t, fn, data C.uintptr_t, st *C.cudago_status) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		return s.LaunchHostFunc(uintptr(fn), uintptr(data))
	})
}

// cudagoCaptureHost sets over, and records nothing, if the capture has ended
// meanwhile.
//
//export cudagoCaptureHost
func cudagoCaptureHost(on C.uint64_t, fn, data C.uintptr_t, ref *C.cudago_ref, site C.uint32_t, over *C.int32_t, st *C.cudago_status) {
	p := cuda.HostParams{Fn: uintptr(fn), UserData: uintptr(data)}
	op := graph.Operation{Params: p, Operands: operands(ref, 1), Site: uint32(site)}
	guard(st, func() error {
		return unlessOver(recordAs(on, op, func(s *cuda.Stream) error { return s.LaunchHostFunc(p.Fn, p.UserData) }), over)
	})
}
