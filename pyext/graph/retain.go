// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

// cudagoGraphRetain is for a graph that is not being captured.
//
//export cudagoGraphRetain
func cudagoGraphRetain(id C.uint64_t, refs *C.cudago_ref, n C.int, st *C.cudago_status) {
	list := operands(refs, n)
	guard(st, func() error {
		g, err := graphs.Get(uint64(id))
		if err != nil {
			releaseOperands(list)
			return err
		}
		err = g.Retain(list)
		g.outermost().holder.apply()
		return err
	})
}

//export cudagoCaptureRetain
func cudagoCaptureRetain(capture C.uint64_t, refs *C.cudago_ref, n C.int, st *C.cudago_status) {
	list := operands(refs, n)
	guard(st, func() error {
		c, err := captures.Get(uint64(capture))
		if err != nil {
			releaseOperands(list)
			return err
		}
		return c.Keep(list)
	})
}
