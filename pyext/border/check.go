// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include "border.h"
*/
import "C"

import (
	"encoding/json"
	"strings"
)

//export cudagoSetChecks
func cudagoSetChecks(names *C.char, st *C.cudago_status) (was *C.char) {
	guard(st, func() error {
		before, err := Driver.Load().SetChecks(C.GoString(names))
		if err == nil {
			was = C.CString(before)
		}
		return err
	})
	return was
}

// cudagoChecking reports whether any check is on.
//
//export cudagoChecking
func cudagoChecking() C.int {
	if d := Driver.Load(); d != nil && d.Checks() != "" {
		return 1
	}
	return 0
}

// cudagoTakeReports returns a JSON list.
//
//export cudagoTakeReports
func cudagoTakeReports(st *C.cudago_status) (text *C.char) {
	guard(st, func() error {
		reports := []string{}
		if d := Driver.Load(); d != nil {
			reports = append(reports, d.TakeReports()...)
		}
		b, err := json.Marshal(reports)
		text = C.CString(string(b))
		return err
	})
	return text
}

//export cudagoCancelKernels
func cudagoCancelKernels(st *C.cudago_status) {
	guard(st, func() error { return Driver.Load().CancelKernels() })
}

// cudagoInterruptKernels returns a line for each kernel that it ended, or NULL.
//
//export cudagoInterruptKernels
func cudagoInterruptKernels() *C.char {
	if ended := Driver.Load().InterruptKernels(); len(ended) > 0 {
		return C.CString(strings.Join(ended, "\n"))
	}
	return nil
}

//export cudagoNoteSite
func cudagoNoteSite(site *C.char) { Driver.Load().NoteSite(C.GoString(site)) }

//export cudagoHostAccess
func cudagoHostAccess(p C.uintptr_t, size C.uint64_t) {
	Driver.Load().HostAccess(uintptr(p), uint64(size))
}
