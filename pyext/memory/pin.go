// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"errors"
	"time"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// cudagoPin page-locks host memory. On success Go owns the reference to the
// buffer export.
//
//export cudagoPin
func cudagoPin(address, size C.uint64_t, readOnly C.int, export C.uintptr_t, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		c, err := border.ContextOf(0)
		if err != nil {
			return err
		}
		o := cuda.HostRegistration{
			Ptr: uint64(address), Size: uint64(size), ReadOnly: readOnly != 0,
			Release: func() { border.Drops.Put(uintptr(export)) },
		}
		b, err := c.RegisterHost(o)
		if errors.Is(err, cuda.ErrorHostMemoryAlreadyRegistered) {
			// Perhaps by a buffer that was closed but is not released yet.
			border.Reaper.Flush(patience)
			b, err = c.RegisterHost(o)
		}
		if err != nil {
			return err
		}
		id = C.uint64_t(buffers.Put(b))
		return nil
	})
	return id
}

// An unpinning is a pinned Python object as an item of the reaper. It begins
// only while no capture is open: if it were left to the end of a capture, the
// thread that ends the capture would wait for the device with the GIL held. A
// goroutine makes the wait, so that the reaper can go on with other items while
// a long kernel runs.
type unpinning struct {
	b     *cuda.Buffer
	ended chan error // nil until begun
}

// Step implements finalize.Item.
func (u *unpinning) Step() (done bool, err error) {
	if u.ended == nil {
		if border.Driver.Load().Capturing() {
			return false, nil
		}
		u.ended = make(chan error, 1)
		go func() {
			var err error
			for !border.Callbacks.Alone(func() { err = border.Contained(u.b.Close) }) {
				time.Sleep(time.Millisecond)
			}
			u.ended <- err
		}()
	}
	select {
	case err := <-u.ended:
		return true, err
	default:
		return false, nil
	}
}

// cudagoPinRelease leaves the unpinning to the reaper.
//
//export cudagoPinRelease
func cudagoPinRelease(id C.uint64_t) {
	if b, ok := buffers.Take(uint64(id)); ok {
		border.Reaper.Add(&unpinning{b: b})
	}
}

// cudagoPinReleaseAfter does so after the uses of the memory.
//
//export cudagoPinReleaseAfter
func cudagoPinReleaseAfter(id, on C.uint64_t, others, positions *C.uint64_t, n C.int) {
	if b, ok := buffers.Take(uint64(id)); ok {
		afterUses(on, others, positions, n, func() { border.Reaper.Add(&unpinning{b: b}) })
	}
}
