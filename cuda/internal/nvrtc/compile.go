// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvrtc

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"bytes"
	"strings"
	"unsafe"
)

// Compile implements [Compiler].
func (l *Library) Compile(in Input) (Output, Result) {
	program, r := l.create(in)
	if r != NVRTC_SUCCESS {
		return Output{Failed: "nvrtcCreateProgram"}, r
	}
	defer C.nvrtcDestroyProgram(l.fn[nvrtcDestroyProgram], &program)

	for _, e := range in.NameExpressions {
		if r := l.addNameExpression(program, e); r != NVRTC_SUCCESS {
			return Output{Log: l.log(program), Failed: "nvrtcAddNameExpression"}, r
		}
	}
	options := newStrings(in.Options)
	defer options.free()
	r = Result(C.nvrtcCompileProgram(l.fn[nvrtcCompileProgram], program, options.count(), options.array()))
	out := Output{Log: l.log(program)}
	if r != NVRTC_SUCCESS {
		out.Failed = "nvrtcCompileProgram"
		return out, r
	}
	out.PTX = l.form(program, nvrtcGetPTXSize, nvrtcGetPTX)
	out.PTX = bytes.TrimRight(out.PTX, "\x00")
	out.CUBIN = l.form(program, nvrtcGetCUBINSize, nvrtcGetCUBIN)
	out.LTOIR = l.form(program, nvrtcGetLTOIRSize, nvrtcGetLTOIR)
	out.LoweredNames, r = l.loweredNames(program, in.NameExpressions)
	if r != NVRTC_SUCCESS {
		return Output{Log: out.Log, Failed: "nvrtcGetLoweredName"}, r
	}
	return out, NVRTC_SUCCESS
}

func (l *Library) create(in Input) (program C.nvrtcProgram, r Result) {
	source := C.CString(in.Source)
	defer C.free(unsafe.Pointer(source))
	var name *C.char
	if in.Name != "" {
		name = C.CString(in.Name)
		defer C.free(unsafe.Pointer(name))
	}
	var texts, names []string
	for _, h := range in.Headers {
		texts, names = append(texts, h.Source), append(names, h.Name)
	}
	headers, includes := newStrings(texts), newStrings(names)
	defer headers.free()
	defer includes.free()
	r = Result(C.nvrtcCreateProgram(l.fn[nvrtcCreateProgram], &program, source, name,
		headers.count(), headers.array(), includes.array()))
	return program, r
}

func (l *Library) addNameExpression(program C.nvrtcProgram, expression string) Result {
	text := C.CString(expression)
	defer C.free(unsafe.Pointer(text))
	return Result(C.nvrtcAddNameExpression(l.fn[nvrtcAddNameExpression], program, text))
}

func (l *Library) loweredNames(program C.nvrtcProgram, expressions []string) (map[string]string, Result) {
	if len(expressions) == 0 {
		return nil, NVRTC_SUCCESS
	}
	lowered := make(map[string]string, len(expressions))
	for _, e := range expressions {
		text := C.CString(e)
		var name *C.char
		r := Result(C.nvrtcGetLoweredName(l.fn[nvrtcGetLoweredName], program, text, &name))
		C.free(unsafe.Pointer(text))
		if r != NVRTC_SUCCESS {
			return nil, r
		}
		lowered[e] = C.GoString(name)
	}
	return lowered, NVRTC_SUCCESS
}

func (l *Library) log(program C.nvrtcProgram) string {
	text := l.form(program, nvrtcGetProgramLogSize, nvrtcGetProgramLog)
	return strings.TrimRight(strings.ToValidUTF8(string(text), "?"), "\x00\n") // it quotes lines of headers
}

// form gets one form of the output, or nil: NVRTC answers for a form that was
// not asked for with size 0 or with an error, by version.
func (l *Library) form(program C.nvrtcProgram, size, get int) []byte {
	var n C.size_t
	if C.nvrtc_size(l.fn[size], program, &n) != 0 || n == 0 {
		return nil
	}
	b := make([]byte, n)
	if C.nvrtc_bytes(l.fn[get], program, (*C.char)(unsafe.Pointer(&b[0]))) != 0 {
		return nil
	}
	return b
}

// cstrings is an array of C strings in Go memory. The strings are C's, so that
// the array may be passed to C.
type cstrings []*C.char

func newStrings(list []string) cstrings {
	var s cstrings
	for _, text := range list {
		s = append(s, C.CString(text))
	}
	return s
}

func (s cstrings) count() C.int { return C.int(len(s)) }

func (s cstrings) array() **C.char { return unsafe.SliceData(s) }

func (s cstrings) free() {
	for _, text := range s {
		C.free(unsafe.Pointer(text))
	}
}
