// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package nvrtc compiles CUDA C++ at run time by NVIDIA's libnvrtc.
//
// The library is opened at run time, from where a Python wheel, the system or
// a CUDA toolkit has put it. It needs no driver and no GPU.
//
// Nothing here takes a lock; programs are compiled side by side as far as
// NVRTC itself does.
package nvrtc

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import "fmt"

// Compiler turns CUDA C++ into code for a device. It is safe for concurrent
// use.
type Compiler interface {
	// Version is that of the compiler: 13.0 accepts what CUDA 13.0 does.
	Version() (major, minor int)
	// SupportedArchs lists the architectures, as 75 for sm_75, in rising order.
	SupportedArchs() []int
	// Compile compiles one program. Output.Log is filled whatever the result
	// is; the rest of it only on success.
	Compile(in Input) (Output, Result)
	// Path is the file that the compiler was loaded from, or the name that
	// the loader found it by.
	Path() string
	// Identity differs between compilers that may produce different code: it has
	// the version, and what files they are.
	Identity() string
}

// Header is a file that the source may include, given in memory.
type Header struct {
	Name   string // as in #include "name"
	Source string
}

// Input is a program to compile.
type Input struct {
	Source string
	Name   string // file name for messages; empty: NVRTC's "default_program"
	// Options are NVRTC's, as "--gpu-architecture=sm_90". For sm_XX the output
	// has a cubin and PTX, for compute_XX only PTX.
	Options []string
	Headers []Header
	// NameExpressions are kernels or variables as C++ spells them, as
	// "scale<float>". Naming a template instantiates it.
	NameExpressions []string
}

// Output is the result of a compilation. A kind of code that was not requested
// is nil.
type Output struct {
	PTX          []byte // text, without NVRTC's closing NUL
	CUBIN        []byte
	LTOIR        []byte            // with the option -dlto
	Log          string            // warnings and errors
	LoweredNames map[string]string // name expression to symbol in the code
	Failed       string            // the call that failed, or empty
}

// Result is an nvrtcResult. From nvrtc.h, CUDA 13.0.
type Result int32

// The results that a caller may tell apart.
const (
	NVRTC_SUCCESS                         Result = 0
	NVRTC_ERROR_OUT_OF_MEMORY             Result = 1
	NVRTC_ERROR_INVALID_INPUT             Result = 3
	NVRTC_ERROR_INVALID_OPTION            Result = 5
	NVRTC_ERROR_COMPILATION               Result = 6
	NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID Result = 10
)

// resultNames has the names of nvrtc.h, CUDA 13.0, by code.
var resultNames = [...]string{
	"NVRTC_SUCCESS",
	"NVRTC_ERROR_OUT_OF_MEMORY",
	"NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
	"NVRTC_ERROR_INVALID_INPUT",
	"NVRTC_ERROR_INVALID_PROGRAM",
	"NVRTC_ERROR_INVALID_OPTION",
	"NVRTC_ERROR_COMPILATION",
	"NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
	"NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
	"NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
	"NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
	"NVRTC_ERROR_INTERNAL_ERROR",
	"NVRTC_ERROR_TIME_FILE_WRITE_FAILED",
	"NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED",
	"NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED",
	"NVRTC_ERROR_PCH_CREATE",
	"NVRTC_ERROR_CANCELLED",
	"NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED",
}

// String returns the name that nvrtc.h gives, or the number.
func (r Result) String() string {
	if r >= 0 && int(r) < len(resultNames) {
		return resultNames[r]
	}
	return fmt.Sprintf("nvrtcResult %d", int32(r))
}

// Library is NVRTC, opened. It implements [Compiler] and is immutable.
type Library struct {
	path         string
	major, minor int
	archs        []int
	identity     string
	fn           [callCount]C.address
}

var _ Compiler = (*Library)(nil)

// Version implements [Compiler].
func (l *Library) Version() (major, minor int) { return l.major, l.minor }

// SupportedArchs implements [Compiler].
func (l *Library) SupportedArchs() []int { return append([]int(nil), l.archs...) }

// Path implements [Compiler].
func (l *Library) Path() string { return l.path }

// Identity implements [Compiler].
func (l *Library) Identity() string { return l.identity }

// query reads what does not change. It reports whether the library answered.
func (l *Library) query() bool {
	var major, minor, count C.int
	if C.nvrtcVersion(l.fn[nvrtcVersion], &major, &minor) != 0 {
		return false
	}
	l.major, l.minor = int(major), int(minor)
	if C.nvrtcGetNumSupportedArchs(l.fn[nvrtcGetNumSupportedArchs], &count) != 0 || count <= 0 {
		return false
	}
	archs := make([]C.int, count)
	if C.nvrtcGetSupportedArchs(l.fn[nvrtcGetSupportedArchs], &archs[0]) != 0 {
		return false
	}
	for _, a := range archs {
		l.archs = append(l.archs, int(a))
	}
	return true
}
