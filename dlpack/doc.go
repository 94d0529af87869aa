// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package dlpack exchanges tensors with other libraries by the DLPack protocol,
// version 1.3, and owns the cell: the one counted thing behind every buffer,
// view, tensor, export and graph operand.
//
// The exchange itself is a small C core (cell.c, exchange.c, layout.c), because
// a consumer may run a deleter on any thread, without Python's lock, inside a
// CUDA callback or in a forked child, where Go must not be entered, and because
// a crossing into Go costs more than the whole exchange. The Go side describes
// element types and layouts, drains what deleters left, and counts.
package dlpack

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
*/
import "C"

import "embed"

// Headers that other packages include: see pyext/border/room.go.
//
//go:embed *.h
var _ embed.FS
