// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include <stdlib.h>
#include "border.h"
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"unsafe"

	"github.com/cudago/cudago/cuda"
)

// guard runs fn and writes its outcome to st. Every exported function that can
// fail consists of one call of guard: a panic that reached C would end the
// Python process.
func guard(st *C.cudago_status, fn func() error) {
	defer func() {
		if p := recover(); p != nil {
			fill(st, C.CUDAGO_INTERNAL, 0, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()), nil)
		}
	}()
	if err := fn(); err != nil {
		report(st, err)
	}
}

// Guard is guard for the later rooms; st is C's cudago_status.
func Guard(st unsafe.Pointer, fn func() error) { guard((*C.cudago_status)(st), fn) }

func fill(st *C.cudago_status, kind, code int32, message string, detail map[string]any) {
	st.kind, st.code = C.int32_t(kind), C.int32_t(code)
	st.message = C.CString(message)
	if len(detail) > 0 {
		text, _ := json.Marshal(detail) // strings and numbers alone: cannot fail
		st.detail = C.CString(string(text))
	}
}

// report is the only mapping from Go errors to Python exceptions.
// errors.py:_make is its other half.
func report(st *C.cudago_status, err error) {
	kind, code, detail := classify(err)
	fill(st, kind, code, err.Error(), detail)
}

// Encode is report for the half of the API that gopy binds. Its errors are
// texts, which errors.py:_decode reads.
func Encode(err error) string {
	kind, code, detail := classify(err)
	text, _ := json.Marshal(map[string]any{"kind": kind, "code": code, "message": err.Error(), "detail": detail})
	return string(text)
}

func classify(err error) (kind, code int32, detail map[string]any) {
	var (
		notFound *cuda.DriverNotFoundError
		compile  *cuda.CompileError
		ptx      *cuda.PTXError
		argument *cuda.ArgumentError
		call     *cuda.Error
		result   cuda.Result
		detailed interface{ Detail() map[string]any } // an error of a package that this room does not know
	)
	detail = map[string]any{}
	if errors.As(err, &result) {
		detail["name"] = result.Name()
		detail["sticky"] = result.Sticky()
	}
	if errors.As(err, &call) {
		detail["operation"] = call.Op
		if call.Requested != 0 {
			detail["requested"] = call.Requested
		}
	}
	if errors.As(err, &detailed) {
		maps.Copy(detail, detailed.Detail())
	}
	kind, code = C.CUDAGO_INTERNAL, int32(result)
	switch {
	case errors.As(err, &notFound):
		kind = C.CUDAGO_NO_DRIVER
	case errors.As(err, &compile):
		kind, detail["log"], detail["options"] = C.CUDAGO_COMPILE, compile.Log, compile.Options
		if compile.Op != "" {
			code, detail["name"], detail["operation"] = compile.Code, compile.CodeName, compile.Op
		}
	case errors.As(err, &ptx):
		kind, detail["line"], detail["column"] = C.CUDAGO_PTX, ptx.Line, ptx.Column
		detail["operation"] = ptx.Op
	case errors.Is(err, cuda.ErrClosed):
		kind = C.CUDAGO_CLOSED
	case errors.As(err, &argument):
		kind = argumentKind(argument)
	case errors.As(err, &result):
		kind = C.CUDAGO_CUDA
	}
	return kind, code, detail
}

func argumentKind(e *cuda.ArgumentError) int32 {
	switch e.Kind {
	case cuda.WrongType:
		return C.CUDAGO_TYPE
	case cuda.Overflow:
		return C.CUDAGO_OVERFLOW
	}
	return C.CUDAGO_VALUE
}

//export cudagoResultError
func cudagoResultError(op *C.char, code C.int32_t, st *C.cudago_status) {
	guard(st, func() error { return &cuda.Error{Op: C.GoString(op), Result: cuda.Result(code)} })
}

// cudagoDetailError is the error of a call that C made on a device, with what
// the driver knows about the fault.
//
//export cudagoDetailError
func cudagoDetailError(op *C.char, code, device C.int32_t, text *C.char, st *C.cudago_status) {
	guard(st, func() error {
		c, err := ContextOf(int(device))
		if err != nil {
			return err
		}
		return c.Failure(C.GoString(op), int32(code), C.GoString(text))
	})
}

// cudagoResultPersists counts the codes that say that something is capturing:
// they persist until the capture is over.
//
//export cudagoResultPersists
func cudagoResultPersists(code C.int32_t) C.int {
	r := cuda.Result(code)
	capturing := r >= cuda.ErrorStreamCaptureUnsupported && r <= cuda.ErrorStreamCaptureWrongThread
	return Bool[C.int](capturing || cuda.Persists(int32(code)))
}

//export cudagoResultIsSticky
func cudagoResultIsSticky(code C.int32_t) C.int {
	if cuda.Result(code).Sticky() {
		return 1
	}
	return 0
}

//export cudagoPanic
func cudagoPanic(text *C.char, st *C.cudago_status) {
	guard(st, func() error { panic(C.GoString(text)) })
}

// Contained runs fn and turns a panic into an error.
func Contained(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}

// JoinClose closes something after err, which stays the first error.
func JoinClose(err error, closeIt func() error) error {
	if second := closeIt(); err == nil {
		return second
	}
	return err
}
