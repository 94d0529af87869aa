// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvjitlink

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"bytes"
	"runtime"
	"strings"
	"unsafe"
)

// Library is nvJitLink, opened. It implements [Linker] and is immutable.
type Library struct {
	path         string
	major, minor int
	identity     string
	fn           [callCount]C.address
}

var _ Linker = (*Library)(nil)

// Version implements [Linker].
func (l *Library) Version() (major, minor int) { return l.major, l.minor }

// Identity implements [Linker].
func (l *Library) Identity() string { return l.identity }

// Path is the file that the library was loaded from, or the name that the loader
// found it by.
func (l *Library) Path() string { return l.path }

// Link implements [Linker].
func (l *Library) Link(in Input) (Output, Result) {
	options := make([]*C.char, len(in.Options))
	for i, o := range in.Options {
		options[i] = C.CString(o)
		defer C.free(unsafe.Pointer(options[i]))
	}
	var handle C.nvJitLinkHandle
	r := Result(C.nvJitLinkCreate(l.fn[create], &handle, C.uint32_t(len(options)), unsafe.SliceData(options)))
	if r != NVJITLINK_SUCCESS {
		return Output{Failed: "nvJitLinkCreate"}, r
	}
	defer C.nvJitLinkDestroy(l.fn[destroy], &handle)
	for _, p := range in.Pieces {
		if r = l.add(handle, p); r != NVJITLINK_SUCCESS {
			return Output{Log: l.log(handle), Failed: "nvJitLinkAddData"}, r
		}
	}
	if r = Result(C.nvJitLinkComplete(l.fn[complete], handle)); r != NVJITLINK_SUCCESS {
		return Output{Log: l.log(handle), Failed: "nvJitLinkComplete"}, r
	}
	out := Output{Log: l.log(handle)}
	if in.PTX {
		out.Code = bytes.TrimRight(l.form(handle, ptxSize, ptx), "\x00")
	} else {
		out.Code = l.form(handle, cubinSize, cubin)
	}
	return out, NVJITLINK_SUCCESS
}

func (l *Library) add(handle C.nvJitLinkHandle, p Piece) Result {
	name := C.CString(p.Name)
	defer C.free(unsafe.Pointer(name))
	data := p.Data
	if p.Kind == NVJITLINK_INPUT_PTX {
		data = append(bytes.Clone(data), 0) // it is read as a string
	}
	var pin runtime.Pinner
	pin.Pin(unsafe.SliceData(data))
	defer pin.Unpin()
	return Result(C.nvJitLinkAddData(l.fn[addData], handle, C.int32_t(p.Kind), unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data)), name))
}

func (l *Library) log(handle C.nvJitLinkHandle) string {
	var parts []string
	for _, pair := range [][2]int{{errorLogSize, errorLog}, {infoLogSize, infoLog}} {
		text, _, _ := strings.Cut(string(l.form(handle, pair[0], pair[1])), "\x00") // there may be something behind it
		if text = strings.TrimSpace(strings.ToValidUTF8(text, "?")); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// form gets one form of the output, or nil.
func (l *Library) form(handle C.nvJitLinkHandle, size, get int) []byte {
	var n C.size_t
	if C.nvjitlink_size(l.fn[size], handle, &n) != 0 || n == 0 {
		return nil
	}
	b := make([]byte, n)
	if C.nvjitlink_bytes(l.fn[get], handle, unsafe.Pointer(&b[0])) != 0 {
		return nil
	}
	return b
}
