// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include "border.h"
*/
import "C"

import (
	"runtime"
	"sync"

	"github.com/cudago/cudago/cuda"
)

func init() {
	cuda.WatchDescriptors(func(fd int, isOpen bool) { C.cudago_note_descriptor(C.int32_t(fd), Bool[C.int32_t](isOpen)) })
}

// watchForks makes the runtime call a C function whenever C enters Go. It can be
// set only once.
var watchForks = sync.OnceFunc(func() {
	runtime.SetCgoTraceback(0, nil, C.cudago_go_entered_address(), nil)
})

//export cudagoWatchForks
func cudagoWatchForks() { watchForks() }
