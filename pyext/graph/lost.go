// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package graph

/*
#include "graph.h"
*/
import "C"

import "github.com/cudago/cudago/cuda"

// isLost also knows of a reset that has not reached Go. It needs the GIL.
func isLost(c *cuda.Context) bool {
	return c.IsLost() || C.cudago_resetting(C.int32_t(c.Device().Ordinal())) != 0
}

// tellLost passes on what Lost of a graph or an executable returns. A nil text is
// not wanted.
func tellLost(what string, on *cuda.Device, text **C.char, device *C.int32_t) C.int {
	if what == "" {
		return 0
	}
	if text != nil {
		*text = C.CString(what)
	}
	*device = C.int32_t(on.Ordinal())
	return 1
}

// cudagoExecLost tells whether a reset has taken something of an executable
// that is not Python's: see graph.Exec.Lost. It needs the GIL.
//
//export cudagoExecLost
func cudagoExecLost(id C.uint64_t, text **C.char, device *C.int32_t) C.int {
	x, err := execs.Get(uint64(id))
	if err != nil {
		return 0
	}
	what, on := x.Lost(isLost)
	return tellLost(what, on, text, device)
}

// cudagoGraphLost is cudagoExecLost for a graph of which nothing is being
// instantiated.
//
//export cudagoGraphLost
func cudagoGraphLost(id C.uint64_t, text **C.char, device *C.int32_t) C.int {
	g, err := graphs.Get(uint64(id))
	if err != nil {
		return 0
	}
	what, on := g.Lost(isLost)
	return tellLost(what, on, text, device)
}
