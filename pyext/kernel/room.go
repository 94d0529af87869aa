// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

// Package kernel is the room of code, kernels and launches: from a Python object to an
// address, and to a launch, a copy or a fill.
package kernel

/*
#cgo CFLAGS: -I${SRCDIR}/../include -I${SRCDIR}/.. -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-cast-function-type -Wno-missing-field-initializers
#include "kernel.h"
*/
import "C"

import (
	"embed"
	"unsafe"

	"github.com/cudago/cudago/pyext/border"
	// Their headers are included.
	_ "github.com/cudago/cudago/dlpack"
	_ "github.com/cudago/cudago/pyext/memory"
	_ "github.com/cudago/cudago/pyext/stream"
	_ "github.com/cudago/cudago/pyext/tensor"
)

// For the reason see border/room.go.
//
//go:embed *.h
var _ embed.FS

// guard is border.Guard. Go treats the C types of each package as distinct.
func guard(st *C.cudago_status, fn func() error) { border.Guard(unsafe.Pointer(st), fn) }
