// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package nvjitlink links device code by NVIDIA's libnvJitLink.
//
// The library is opened at run time, from where a Python wheel, the system or a
// CUDA toolkit has put it. It needs no driver and no GPU, and takes no lock.
package nvjitlink

import "fmt"

// Linker links device code. It is safe for concurrent use.
type Linker interface {
	// Version is that of the library: 13.0 links what CUDA 13.0 made.
	Version() (major, minor int)
	// Link links the inputs. Output.Log is filled whatever the result is; the
	// rest of it only on success.
	Link(in Input) (Output, Result)
	// Identity differs between linkers that may produce different code: it has the
	// version, and what file it is.
	Identity() string
}

// Kind says what a piece of code is, an nvJitLinkInputType.
type Kind int32

// From nvJitLink.h, CUDA 13.0.
const (
	NVJITLINK_INPUT_CUBIN   Kind = 1
	NVJITLINK_INPUT_PTX     Kind = 2
	NVJITLINK_INPUT_LTOIR   Kind = 3
	NVJITLINK_INPUT_FATBIN  Kind = 4
	NVJITLINK_INPUT_OBJECT  Kind = 5
	NVJITLINK_INPUT_LIBRARY Kind = 6
)

// Piece is one input, with a name for messages.
type Piece struct {
	Kind Kind
	Data []byte
	Name string
}

// Input is what to link.
type Input struct {
	Pieces []Piece
	// Options are nvJitLink's, as "-arch=sm_90", "-lto".
	Options []string
	// PTX asks for PTX, which only -lto with -ptx produces; else for a cubin.
	PTX bool
}

// Output is the result of a link.
type Output struct {
	Code []byte // PTX without its closing NUL, or a cubin
	Log  string // errors and other messages
	// Failed is the call that failed, or empty.
	Failed string
}

// Result is an nvJitLinkResult. From nvJitLink.h, CUDA 13.0.
type Result int32

// The results that a caller may tell apart.
const (
	NVJITLINK_SUCCESS                   Result = 0
	NVJITLINK_ERROR_UNRECOGNIZED_OPTION Result = 1
	NVJITLINK_ERROR_MISSING_ARCH        Result = 2
	NVJITLINK_ERROR_INVALID_INPUT       Result = 3
)

// resultNames has the names of nvJitLink.h, CUDA 13.0, by code.
var resultNames = [...]string{
	"NVJITLINK_SUCCESS",
	"NVJITLINK_ERROR_UNRECOGNIZED_OPTION",
	"NVJITLINK_ERROR_MISSING_ARCH",
	"NVJITLINK_ERROR_INVALID_INPUT",
	"NVJITLINK_ERROR_PTX_COMPILE",
	"NVJITLINK_ERROR_NVVM_COMPILE",
	"NVJITLINK_ERROR_INTERNAL",
	"NVJITLINK_ERROR_THREADPOOL",
	"NVJITLINK_ERROR_UNRECOGNIZED_INPUT",
	"NVJITLINK_ERROR_FINALIZE",
}

// String returns the name that nvJitLink.h gives, or the number.
func (r Result) String() string {
	if r >= 0 && int(r) < len(resultNames) {
		return resultNames[r]
	}
	return fmt.Sprintf("nvJitLinkResult %d", int32(r))
}
