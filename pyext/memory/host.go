// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"sync/atomic"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// hostVisible says whether the driver's device memory has addresses for the
// host, which an allocation of one byte tells. If it has, other libraries see
// all our memory as host memory.
var hostVisible atomic.Int32 // 0: not known yet, 1: no, 2: yes

//export cudagoHostVisible
func cudagoHostVisible(ordinal C.int32_t) C.int32_t {
	if v := hostVisible.Load(); v != 0 {
		return C.int32_t(v - 1)
	}
	visible := C.int32_t(0)
	// Relaxed: the first query may come while somebody captures.
	err := border.Contained(border.Relaxed(func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		mr, err := c.Device().DefaultMemoryResource()
		if err != nil {
			return err
		}
		b, err := mr.Allocate(1, c.DefaultStream(cuda.Legacy))
		if err != nil {
			return err
		}
		host, err := c.HostPointer(b.Ptr())
		if err != nil {
			return border.JoinClose(err, b.Close)
		}
		visible = border.Bool[C.int32_t](host != 0)
		hostVisible.Store(int32(visible) + 1)
		return b.Close()
	}))
	if err != nil {
		border.ReportAside(err)
	}
	return visible
}

// cudagoHostAddress returns the host's address of device memory, or 0 if there
// is none, or the driver does not tell.
//
//export cudagoHostAddress
func cudagoHostAddress(ordinal C.int32_t, ptr C.uint64_t) (address C.uint64_t) {
	err := border.Contained(func() error {
		c, err := border.ContextOf(int(ordinal))
		if err != nil {
			return err
		}
		host, err := c.HostPointer(uint64(ptr))
		address = C.uint64_t(host)
		return err
	})
	if err != nil {
		border.ReportAside(err)
	}
	return address
}

//export cudagoHostKnown
func cudagoHostKnown(address C.uint64_t) (known C.int) {
	var st C.cudago_status
	guard(&st, func() error {
		c, err := border.ContextOf(0)
		if err != nil {
			return err
		}
		info, err := c.PointerInfo(uint64(address))
		if err == nil && info.Kind != cuda.HostMemory {
			known = 1
		}
		return err
	})
	return known
}
