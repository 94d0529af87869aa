// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package nvvm compiles NVVM IR, the form of LLVM's IR for NVIDIA's devices, by
// NVIDIA's libnvvm.
//
// The library is opened at run time, from where a Python wheel, the system or a
// CUDA toolkit has put it, and libdevice with it. It needs no driver and no GPU.
//
// Nothing here takes a lock: "libNVVM API provides a thread-safe interface"
// (libNVVM API, Thread Safety).
package nvvm

import "fmt"

// Compiler turns NVVM IR into code. It is safe for concurrent use.
type Compiler interface {
	// Knows reports whether the compiler has the architecture, as "compute_90".
	Knows(arch string) bool
	// Compile verifies a program, and compiles it. Output.Log is filled whatever
	// the result is; the rest of it only on success.
	Compile(in Input) (Output, Result)
	// Libdevice returns the functions called __nv_*, as bitcode.
	//
	// Errors: [*LibdeviceError].
	Libdevice() ([]byte, error)
	// Identity differs between compilers that may produce different code: it
	// says what files they are, libdevice's included.
	Identity() string
}

// Module is a piece of a program: LLVM's bitcode or its text.
type Module struct {
	Name   string // for messages
	Source []byte
}

// Input is a program to compile.
type Input struct {
	Modules []Module // all of which are compiled
	// Libraries are bitcode of which only what the modules need is compiled.
	Libraries []Module
	// Options are libnvvm's, as "-arch=compute_90", "-opt=3". With "-gen-lto" the
	// output is LTO-IR, else PTX.
	Options []string
}

// Output is the result of a compilation.
type Output struct {
	Code []byte // PTX without its closing NUL, or LTO-IR
	Log  string // errors and warnings
	// Failed is the call that failed, or empty.
	Failed string
}

// Result is an nvvmResult. From nvvm.h, CUDA 13.0.
type Result int32

// The results that a caller may tell apart.
const (
	NVVM_SUCCESS              Result = 0
	NVVM_ERROR_INVALID_INPUT  Result = 4
	NVVM_ERROR_INVALID_IR     Result = 6
	NVVM_ERROR_INVALID_OPTION Result = 7
	NVVM_ERROR_COMPILATION    Result = 9
)

// resultNames has the names of nvvm.h, CUDA 13.0, by code.
var resultNames = [...]string{
	"NVVM_SUCCESS",
	"NVVM_ERROR_OUT_OF_MEMORY",
	"NVVM_ERROR_PROGRAM_CREATION_FAILURE",
	"NVVM_ERROR_IR_VERSION_MISMATCH",
	"NVVM_ERROR_INVALID_INPUT",
	"NVVM_ERROR_INVALID_PROGRAM",
	"NVVM_ERROR_INVALID_IR",
	"NVVM_ERROR_INVALID_OPTION",
	"NVVM_ERROR_NO_MODULE_IN_PROGRAM",
	"NVVM_ERROR_COMPILATION",
	"NVVM_ERROR_CANCELLED",
}

// String returns the name that nvvm.h gives, or the number.
func (r Result) String() string {
	if r >= 0 && int(r) < len(resultNames) {
		return resultNames[r]
	}
	return fmt.Sprintf("nvvmResult %d", int32(r))
}
