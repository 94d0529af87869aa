// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

// Package native is the hand-written half of the extension module: heap types,
// argument parsing and the launch paths in C, and the Go functions that they
// call. It is the border to Python and nothing else; what a call means is
// decided in packages cuda, graph and dlpack.
//
// # Handles
//
// C refers to Go's objects by numbers that are never used twice (table.go), and
// to the parts that it needs at once by C blocks that Go allocates.
//
// # Locks
//
// The GIL is the outermost lock. No Go lock is held across a call into Python or
// a blocking driver call, and no goroutine takes the GIL: references go through
// the drop queue (drop.go).
package native

/*
#cgo CFLAGS: -I${SRCDIR}/../include -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-cast-function-type -Wno-missing-field-initializers
*/
import "C"

import (
	// Its C files hold the owner cells.
	_ "github.com/cudago/cudago/dlpack"
)
