// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include "border.h"
*/
import "C"

import (
	"time"
	"unsafe"
)

// A Task is a call that makes something and may wait for other threads, whose
// Python thread is to hear Ctrl-C meanwhile. It runs in a goroutine; after Ctrl-C
// that continues alone, and what it has made is given back.
type Task struct {
	// Made are numbers of what was made. Written by the call.
	Made [2]uint64
	// Undo gives it back. Written by the call, unless it fails.
	Undo func() error

	end chan error
}

var tasks = NewTable[*Task]("task")

// BeginTask begins a call, for cudago_task of border.h.
func BeginTask(call func(*Task) error) uint64 {
	t := &Task{end: make(chan error, 1)}
	go func() { t.end <- Contained(func() error { return call(t) }) }()
	return tasks.Put(t)
}

// cudagoTaskSlice waits up to ms milliseconds: 1 if it must be called again.
//
//export cudagoTaskSlice
func cudagoTaskSlice(task C.uint64_t, ms C.int, made *C.uint64_t, st *C.cudago_status) (again C.int) {
	guard(st, func() error {
		t, err := tasks.Get(uint64(task))
		if err != nil {
			return err
		}
		select {
		case err := <-t.end:
			tasks.Take(uint64(task))
			for i := range t.Made {
				unsafe.Slice(made, len(t.Made))[i] = C.uint64_t(t.Made[i])
			}
			return err
		case <-time.After(time.Duration(ms) * time.Millisecond):
			again = 1
			return nil
		}
	})
	return again
}

// cudagoTaskAbandon leaves an interrupted task to continue alone.
//
//export cudagoTaskAbandon
func cudagoTaskAbandon(task C.uint64_t) {
	t, ok := tasks.Take(uint64(task))
	if !ok {
		return
	}
	go func() {
		if err := <-t.end; err == nil && t.Undo != nil {
			Reaper.Add(Once(t.Undo))
		}
	}()
}
