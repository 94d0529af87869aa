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

	"github.com/cudago/cudago/cuda"
)

//export cudagoFailAtRandom
func cudagoFailAtRandom(rate C.double, st *C.cudago_status) {
	guard(st, func() error { return Driver.Load().FailAtRandom(float64(rate)) })
}

//export cudagoFailNext
func cudagoFailNext(call *C.char, n C.int, code C.int32_t, st *C.cudago_status) {
	guard(st, func() error { return Driver.Load().FailNext(C.GoString(call), int(n), cuda.Result(code)) })
}

//export cudagoAsAnother
func cudagoAsAnother(call *C.char, device C.int, handle C.uint64_t, st *C.cudago_status) (made C.uint64_t) {
	guard(st, func() error {
		c, err := ContextOf(int(device))
		if err != nil {
			return err
		}
		h, err := c.AsAnother(C.GoString(call), uintptr(handle))
		made = C.uint64_t(h)
		return err
	})
	return made
}

// cudagoFaults returns a JSON object: how many calls of each name have failed.
//
//export cudagoFaults
func cudagoFaults(st *C.cudago_status) (text *C.char) {
	guard(st, func() error {
		counts, err := Driver.Load().Faults()
		if err != nil {
			return err
		}
		b, err := json.Marshal(counts)
		text = C.CString(string(b))
		return err
	})
	return text
}
