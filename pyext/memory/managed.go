// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"github.com/cudago/cudago/cuda"

	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

// A location is a device's ordinal, or one of these.
const (
	atHost  = C.int32_t(C.LOCATION_HOST)
	nowhere = C.int32_t(C.LOCATION_NONE)
)

func locationOf(at C.int32_t) (cuda.Location, error) {
	if at < 0 {
		return cuda.Location{}, nil
	}
	dev, err := border.Driver.Load().Device(int(at))
	return cuda.Location{Device: dev}, err
}

func locationNumber(l *cuda.Location) C.int32_t {
	switch {
	case l == nil:
		return nowhere
	case l.Device == nil:
		return atHost
	}
	return C.int32_t(l.Device.Ordinal())
}

//export cudagoAdvise
func cudagoAdvise(ordinal C.int32_t, ptr, size C.uint64_t, advice, at C.int32_t, st *C.cudago_status) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		l, err := locationOf(at)
		if err != nil {
			return err
		}
		return c.Advise(uint64(ptr), uint64(size), cuda.Advice(advice), l)
	})
}

//export cudagoPrefetch
func cudagoPrefetch(on, ptr, size C.uint64_t, at C.int32_t, st *C.cudago_status) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		l, err := locationOf(at)
		if err != nil {
			return err
		}
		return cuda.Prefetch(uint64(ptr), uint64(size), l, s)
	})
}

//export cudagoRangeAttributes
func cudagoRangeAttributes(ordinal C.int32_t, ptr, size C.uint64_t, out *C.cudago_advice, st *C.cudago_status) {
	guard(st, func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		a, err := c.RangeAttributes(uint64(ptr), uint64(size))
		if err != nil {
			return err
		}
		if a.ReadMostly {
			out.read_mostly = 1
		}
		out.preferred, out.prefetched = locationNumber(a.Preferred), locationNumber(a.LastPrefetch)
		for _, l := range a.AccessedBy {
			if int(out.accessed) < len(out.accessed_by) {
				out.accessed_by[out.accessed] = locationNumber(&l)
				out.accessed++
			}
		}
		return nil
	})
}
