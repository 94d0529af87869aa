// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package xla

/*
#include "xla.h"
*/
import "C"

import (
	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

//export cudagoXlaAllow
func cudagoXlaAllow(p, size C.uint64_t, readOnly C.int) {
	aside(func() { border.Driver.Load().AllowHost(uintptr(p), uint64(size), readOnly != 0) })
}

//export cudagoXlaDisallow
func cudagoXlaDisallow(p, size C.uint64_t, readOnly C.int) {
	aside(func() { border.Driver.Load().DisallowHost(uintptr(p), uint64(size), readOnly != 0) })
}

// aside runs what has no error: a panic must not reach XLA's thread.
func aside(run func()) {
	if err := border.Contained(func() error { run(); return nil }); err != nil {
		border.ReportAside(err)
	}
}

// cudagoXlaWait waits for the legacy default stream of a device, for which XLA's
// threads have no number.
//
//export cudagoXlaWait
func cudagoXlaWait(device C.int32_t, st *C.cudago_status) {
	guard(st, func() error {
		c, err := border.ContextOf(int(device))
		if err != nil {
			return err
		}
		return border.Relaxed(c.DefaultStream(cuda.Legacy).Synchronize)()
	})
}
