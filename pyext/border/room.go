// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

// Package border is what all rooms of the border to Python share and what knows
// no noun: errors, the entry of a call, tables, waiting, dropping, the driver.
//
// # Handles
//
// C refers to Go's objects by numbers that are never used twice (table.go). The
// parts that it needs without a call into Go are in C blocks that Go allocates.
//
// # Locks
//
// The GIL is the outermost lock. No Go lock is held across a call into Python or
// a blocking driver call, and no goroutine takes the GIL: references go through
// the drop queue (drop.go).
package border

/*
#cgo CFLAGS: -I${SRCDIR}/../include -I${SRCDIR}/.. -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-cast-function-type -Wno-missing-field-initializers
*/
import "C"

import (
	"embed"

	// Its C files define the owner cells.
	_ "github.com/cudago/cudago/dlpack"
)

// Go rebuilds a package when one that it imports has changed, but does not see
// headers in other folders. Because it is embedded, a changed header here counts
// as a change to this package.
//
//go:embed *.h
var _ embed.FS

// Bool is C's number for b.
func Bool[T ~int32](b bool) T {
	if b {
		return 1
	}
	return 0
}
