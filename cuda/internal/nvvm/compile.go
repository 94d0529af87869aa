// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvvm

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"unsafe"
)

// Library is libnvvm, opened. It implements [Compiler] and is immutable.
type Library struct {
	path      string
	libdevice string // the file; empty if there is none
	identity  string
	advice    string // where a libdevice would come from
	fn        [callCount]C.address
}

var _ Compiler = (*Library)(nil)

// Path is the file that the library was loaded from, or the name that the loader
// found it by.
func (l *Library) Path() string { return l.path }

// Identity implements [Compiler].
func (l *Library) Identity() string { return l.identity }

// empty is the smallest program, which tells whether options are known: they are
// read only if there is a module.
const empty = `target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128` +
	`-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
!nvvmir.version = !{!0}
!0 = !{i32 2, i32 0}
`

// Knows implements [Compiler]. It takes a tenth of a millisecond.
func (l *Library) Knows(arch string) bool {
	in := Input{Modules: []Module{{"empty", []byte(empty)}}, Options: []string{"-arch=" + arch}}
	program, _, r := l.verified(in)
	defer l.destroy(program)
	return r == NVVM_SUCCESS
}

// Compile implements [Compiler].
func (l *Library) Compile(in Input) (Output, Result) {
	program, out, r := l.verified(in)
	defer l.destroy(program)
	if r != NVVM_SUCCESS {
		return out, r
	}
	if r = l.work(compileProgram, program, in.Options); r != NVVM_SUCCESS {
		return Output{Log: l.log(program), Failed: "nvvmCompileProgram"}, r
	}
	out = Output{Code: l.form(program, resultSize, result), Log: l.log(program)}
	if !slices.Contains(in.Options, "-gen-lto") {
		out.Code = bytes.TrimRight(out.Code, "\x00")
	}
	return out, NVVM_SUCCESS
}

// verified makes a program of valid modules. The caller destroys it, whatever the
// result is.
func (l *Library) verified(in Input) (program C.nvvmProgram, out Output, r Result) {
	if r = Result(C.nvvmCreateProgram(l.fn[createProgram], &program)); r != NVVM_SUCCESS {
		return 0, Output{Failed: "nvvmCreateProgram"}, r
	}
	for _, m := range in.Modules {
		if r = l.add(addModule, program, m); r != NVVM_SUCCESS {
			return program, l.notAccepted(program, "nvvmAddModuleToProgram", m, r), r
		}
	}
	for _, m := range in.Libraries {
		if r = l.add(lazyAddModule, program, m); r != NVVM_SUCCESS {
			return program, l.notAccepted(program, "nvvmLazyAddModuleToProgram", m, r), r
		}
	}
	if r = l.work(verifyProgram, program, in.Options); r != NVVM_SUCCESS {
		out.Failed = "nvvmVerifyProgram"
	}
	out.Log = l.log(program)
	return program, out, r
}

func (l *Library) notAccepted(program C.nvvmProgram, call string, m Module, r Result) Output {
	return Output{Log: m.Name + ": is not accepted: " + r.String() + "\n" + l.log(program), Failed: call}
}

func (l *Library) destroy(program C.nvvmProgram) {
	if program != 0 {
		C.nvvmDestroyProgram(l.fn[destroyProgram], &program)
	}
}

func (l *Library) add(call int, program C.nvvmProgram, m Module) Result {
	if len(m.Source) == 0 {
		return NVVM_ERROR_INVALID_INPUT // as libnvvm says
	}
	name := C.CString(m.Name)
	defer C.free(unsafe.Pointer(name))
	var pin runtime.Pinner
	pin.Pin(unsafe.SliceData(m.Source))
	defer pin.Unpin()
	return Result(C.nvvm_add(l.fn[call], program, unsafe.Pointer(unsafe.SliceData(m.Source)), C.size_t(len(m.Source)), name))
}

func (l *Library) work(call int, program C.nvvmProgram, options []string) Result {
	list := make([]*C.char, len(options))
	for i, o := range options {
		list[i] = C.CString(o)
		defer C.free(unsafe.Pointer(list[i]))
	}
	return Result(C.nvvm_work(l.fn[call], program, C.int(len(list)), unsafe.SliceData(list)))
}

func (l *Library) log(program C.nvvmProgram) string {
	text, _, _ := strings.Cut(string(l.form(program, logSize, log)), "\x00")
	return strings.TrimSpace(strings.ToValidUTF8(text, "?"))
}

// form gets one form of the output, or nil.
func (l *Library) form(program C.nvvmProgram, size, get int) []byte {
	var n C.size_t
	if C.nvvm_size(l.fn[size], program, &n) != 0 || n == 0 {
		return nil
	}
	b := make([]byte, n)
	if C.nvvm_bytes(l.fn[get], program, unsafe.Pointer(&b[0])) != 0 {
		return nil
	}
	return b
}
