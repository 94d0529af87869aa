// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package kernel

/*
#include <stdlib.h>
#include "kernel.h"
*/
import "C"

import (
	"encoding/json"
	"fmt"
	"strings"
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// Codes are the open object codes.
var Codes = border.NewTable[*cuda.ObjectCode]("object code")

// compileOptions come from _program.py.
type compileOptions struct {
	cuda.ProgramOptions
	NoCache bool
}

//export cudagoCompile
func cudagoCompile(
	ordinal C.int32_t, source *C.char, n C.ssize_t, kind, target, options *C.char,
	outKind, log, warning **C.char, st *C.cudago_status,
) (id C.uint64_t) {
	guard(st, func() error {
		var o compileOptions
		if err := json.Unmarshal([]byte(C.GoString(options)), &o); err != nil {
			return err
		}
		dev, err := border.Driver.Load().Device(int(ordinal))
		if err != nil {
			return err
		}
		p, err := border.Driver.Load().NewProgram(C.GoStringN(source, C.int(n)), C.GoString(kind), o.ProgramOptions)
		if err != nil {
			return err
		}
		cache := &codeCache
		if o.NoCache {
			cache = &cuda.CodeCache{}
		}
		code, warned, err := cache.Compile(p, dev, C.GoString(target))
		if err != nil {
			return err
		}
		*outKind, *log, *warning = C.CString(code.Kind), C.CString(code.Log), C.CString(warned)
		id = C.uint64_t(Codes.Put(code))
		return nil
	})
	return id
}

//export cudagoCodeFrom
func cudagoCodeFrom(kind *C.char, data unsafe.Pointer, n C.ssize_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		code, err := cuda.ObjectCodeFrom(C.GoString(kind), C.GoBytes(data, C.int(n)))
		if err != nil {
			return err
		}
		id = C.uint64_t(Codes.Put(code))
		return nil
	})
	return id
}

//export cudagoCodeFromState
func cudagoCodeFromState(state unsafe.Pointer, n C.ssize_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		code, err := cuda.ObjectCodeFromState(C.GoBytes(state, C.int(n)))
		if err != nil {
			return err
		}
		id = C.uint64_t(Codes.Put(code))
		return nil
	})
	return id
}

//export cudagoCodeData
func cudagoCodeData(
	id C.uint64_t, what *C.char, ordinal C.int32_t, callback C.int, out **C.char, st *C.cudago_status,
) (n C.int64_t) {
	guard(st, func() error {
		code, err := Codes.Get(uint64(id))
		if err != nil {
			return err
		}
		data, err := codeData(code, C.GoString(what), int(ordinal), callback != 0)
		if err != nil {
			return err
		}
		*out = (*C.char)(C.CBytes(append(data, 0)))
		n = C.int64_t(len(data))
		return nil
	})
	return n
}

// codeData answers what code is asked for, some of it about one kernel: a word,
// and the kernel's name after a blank.
func codeData(code *cuda.ObjectCode, what string, ordinal int, callback bool) ([]byte, error) {
	word, name, _ := strings.Cut(what, " ")
	switch word {
	case "data":
		return code.Data, nil
	case "ptx":
		return []byte(code.PTX), nil
	case "kernels":
		names, err := kernelNames(code, ordinal, callback)
		return []byte(strings.Join(names, "\n")), err
	case "state":
		return code.State(), nil
	case "log":
		return []byte(code.Log), nil
	case "symbol":
		return []byte(code.Symbol(name)), nil
	case "plain":
		return []byte(cuda.PlainName(code.Symbol(name))), nil
	case "described":
		names, types := code.DebugParams(code.Symbol(name))
		return []byte(strings.Join(append(names, types...), "\n")), nil
	}
	return nil, fmt.Errorf("BUG: object code has no %q", word)
}

func kernelNames(code *cuda.ObjectCode, ordinal int, callback bool) ([]string, error) {
	dev, err := deviceToLoadOn(code, ordinal, callback)
	if err != nil {
		return nil, err
	}
	m, err := code.Load(dev)
	if err != nil {
		return nil, err
	}
	return m.KernelNames()
}

// deviceToLoadOn returns the device. In a host callback the code must be loaded
// already: cuModuleLoadData waits for the device (580.159), which waits for the
// callback.
func deviceToLoadOn(code *cuda.ObjectCode, ordinal int, callback bool) (*cuda.Device, error) {
	dev, err := border.Driver.Load().Device(ordinal)
	if err != nil || !callback || code.IsLoaded(dev) {
		return dev, err
	}
	return nil, &cuda.Error{
		Op: "cuModuleLoadDataEx", Result: cuda.ErrorNotPermitted,
		Detail: "a host callback must not load code, which waits for the device, which waits for it; get the kernel before",
	}
}

//export cudagoCodeRelease
func cudagoCodeRelease(id C.uint64_t) {
	if code, ok := Codes.Take(uint64(id)); ok {
		border.Reaper.Add(border.Once(code.Close)) // cuModuleUnload waits for running kernels
	}
}
