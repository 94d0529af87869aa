// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package module

/*
#include "module.h"
*/
import "C"

import (
	"time"

	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/finalizer"
	"github.com/cudago/cudago/pyext/kernel"
	"github.com/cudago/cudago/pyext/memory"
	"github.com/cudago/cudago/pyext/stream"
)

//export cudagoDropClose
func cudagoDropClose() {
	finalizer.CloseDue()
	border.Drops.Close()
}

// cudagoCloseRest closes what is open besides graphs, newest first and streams
// last. It does not close memory, which others may hold: unheld memory went with
// its cell. It gives up after the time limit, because unloading code waits for a
// kernel that may never end.
//
//export cudagoCloseRest
func cudagoCloseRest(ms C.long) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		closeAll(stream.Events)
		closeAll(kernel.Kernels)
		closeAll(kernel.Codes)
		closeAll(memory.Resources)
		closeAll(stream.Streams)
	}()
	select {
	case <-done:
	case <-time.After(time.Duration(ms) * time.Millisecond):
	}
}

func closeAll[T interface{ Close() error }](t *border.Table[T]) {
	for _, id := range t.IDs() {
		if v, ok := t.Take(id); ok {
			if err := border.Contained(v.Close); err != nil {
				border.ReportAside(err)
			}
		}
	}
}
