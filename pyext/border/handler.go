// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include "border.h"
*/
import "C"

import "github.com/cudago/cudago/internal/memfault"

func init() {
	begin, end := memfault.Text()
	C.cudago_faults_init(C.uintptr_t(begin), C.uintptr_t(end))
	memfault.SetBorder(func() { C.cudago_faults_begin() }, func() { C.cudago_faults_end() })
}
