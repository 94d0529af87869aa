// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package native

/*
#include "native.h"
*/
import "C"

import "github.com/cudago/cudago/internal/finalize"

// byFinalizer finds the registry's entry of a Python Finalizer.
var byFinalizer = newTable[*finalize.Finalizer]("finalizer")

// cudagoFinalizerNew registers a Python Finalizer, whose reference Go owns until
// it is taken.
//
//export cudagoFinalizerNew
func cudagoFinalizerNew(object C.uintptr_t) C.uint64_t {
	id := lastID.Add(1)
	f := finalizers.Add(func() error { // at exit only: C takes it at every other end
		byFinalizer.take(id)
		C.cudago_finalizer_exit(object)
		return nil
	}, nil)
	byFinalizer.set(id, f)
	return C.uint64_t(id)
}

// cudagoFinalizerTake decides, once, that the caller runs or forgets it.
//
//export cudagoFinalizerTake
func cudagoFinalizerTake(id C.uint64_t) C.int {
	f, ok := byFinalizer.take(uint64(id))
	if !ok {
		return 0
	}
	if _, detached := f.Detach(); !detached {
		return 0
	}
	return 1
}

//export cudagoFinalizerAlive
func cudagoFinalizerAlive(id C.uint64_t) C.int {
	if f, err := byFinalizer.get(uint64(id)); err == nil && f.Alive() {
		return 1
	}
	return 0
}

// cudagoFinalizerAtExit sets the flag if on is 0 or 1, and returns it.
//
//export cudagoFinalizerAtExit
func cudagoFinalizerAtExit(id C.uint64_t, on C.int) C.int {
	f, err := byFinalizer.get(uint64(id))
	if err != nil {
		return 0
	}
	if on >= 0 {
		f.SetAtExit(on != 0)
	}
	if f.AtExit() {
		return 1
	}
	return 0
}
