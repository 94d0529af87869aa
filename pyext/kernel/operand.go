// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package kernel

/*
#include "kernel.h"
*/
import "C"

import (
	"github.com/cudago/cudago/pyext/border"
)

//export cudagoAllowHost
func cudagoAllowHost(p, size C.uint64_t, readOnly C.int) {
	border.Driver.Load().AllowHost(uintptr(p), uint64(size), readOnly != 0)
}

//export cudagoDisallowHost
func cudagoDisallowHost(p, size C.uint64_t, readOnly C.int) {
	border.Driver.Load().DisallowHost(uintptr(p), uint64(size), readOnly != 0)
}
