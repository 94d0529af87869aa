// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

// Package finalizer is the room of finalizers: weakref.finalize's contract.
package finalizer

/*
#cgo CFLAGS: -I${SRCDIR}/../include -I${SRCDIR}/.. -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-cast-function-type -Wno-missing-field-initializers
*/
import "C"

import (
	"embed"

	// Their headers are included.
	_ "github.com/cudago/cudago/dlpack"
	_ "github.com/cudago/cudago/pyext/border"
	_ "github.com/cudago/cudago/pyext/stream"
)

// For the reason see border/room.go.
//
//go:embed *.h
var _ embed.FS
