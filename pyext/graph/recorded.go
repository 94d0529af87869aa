// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

// #include "graph.h"
import "C"

import (
	"time"

	"github.com/cudago/cudago/graph"
)

// A recorder is C, which records launches in an open capture: see recorded.c.
// The memory is the Python graph's, which frees it after the capture's end.
type recorder C.cudago_recorded

// Stop implements [graph.Recorder]. It needs no GIL, without which C may be
// under way: in a driver call that waits for nobody.
func (r *recorder) Stop() []graph.Added {
	for nap := time.Microsecond; C.cudago_recorded_stop((*C.cudago_recorded)(r)) == 0; nap = min(2*nap, time.Millisecond) {
		time.Sleep(nap)
	}
	return readAdded(&r.nodes, true)
}

// Resume implements [graph.Recorder].
func (r *recorder) Resume() { C.cudago_recorded_resume((*C.cudago_recorded)(r)) }
