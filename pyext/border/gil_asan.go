// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext && asan

package border

/*
#include <dlfcn.h>
#include <stdlib.h>

// Not in the stable ABI, so found by name.
static int gil_is_held(void) {
	int (*check)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Check");
	return !check || check();
}
*/
import "C"

import (
	"os"
	"runtime/debug"
)

// NeedsGIL ends the process, with a stack, if this thread does not hold the GIL.
func NeedsGIL() {
	if C.gil_is_held() == 0 {
		_, _ = os.Stderr.WriteString("cudago: this needs the GIL\n")
		_, _ = os.Stderr.Write(debug.Stack())
		C.abort()
	}
}
