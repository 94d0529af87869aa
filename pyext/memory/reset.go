// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "stream/stream.h"
*/
import "C"

import (
	"time"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// A deviceReset is a reset that a Python thread waits for.
type deviceReset struct {
	stop chan struct{}
	end  chan error
	lost bool // the device's context is gone; written before end
}

var resets = border.NewTable[*deviceReset]("reset")

// cudagoResetBegin starts to reset a device. It makes no driver call itself.
//
//export cudagoResetBegin
func cudagoResetBegin(ordinal C.int32_t) C.uint64_t {
	r := &deviceReset{stop: make(chan struct{}), end: make(chan error, 1)}
	go func() { r.end <- border.Contained(func() error { return r.run(int(ordinal)) }) }()
	return C.uint64_t(resets.Put(r))
}

func (r *deviceReset) run(ordinal int) error {
	dev, err := border.Driver.Load().Device(ordinal)
	if err != nil {
		return err
	}
	before, none := dev.Context()
	if none == nil && before.HasGuests() {
		border.Reaper.Flush(patience) // some may be closed, and are about to be destroyed
	}
	err = dev.ResetUnless(r.stop)
	r.lost = none != nil || before.IsLost()
	return err
}

// cudagoResetSlice waits up to ms milliseconds: 1 if it must be called again. At
// the end it says whether the device was reset, which can be so even if there is
// an error.
//
//export cudagoResetSlice
func cudagoResetSlice(id C.uint64_t, ms C.int, lost *C.int, st *C.cudago_status) (again C.int) {
	guard(st, func() error {
		r, err := resets.Get(uint64(id))
		if err != nil {
			return err
		}
		select {
		case err := <-r.end:
			resets.Take(uint64(id))
			*lost = border.Bool[C.int](r.lost)
			return err
		case <-time.After(time.Duration(ms) * time.Millisecond):
			again = 1
			return nil
		}
	})
	return again
}

// cudagoResetStop gives up a reset that is waiting for calls under way. It is
// called once.
//
//export cudagoResetStop
func cudagoResetStop(id C.uint64_t) {
	if r, err := resets.Get(uint64(id)); err == nil {
		close(r.stop)
	}
}

// cudagoResetRefused is the error of a reset in a host callback, for which the
// reset would wait.
//
//export cudagoResetRefused
func cudagoResetRefused(ordinal C.int32_t, st *C.cudago_status) {
	guard(st, func() error {
		dev, err := border.Driver.Load().Device(int(ordinal))
		if err != nil {
			return err
		}
		return &cuda.Error{
			Op: "cuDevicePrimaryCtxReset", Result: cuda.ErrorNotPermitted,
			Detail: "a host callback must not reset " + dev.String() + ", which waits for it",
		}
	})
}

// cudagoCancelKernelsOf ends what a device runs, where the driver can.
//
//export cudagoCancelKernelsOf
func cudagoCancelKernelsOf(ordinal C.int32_t) {
	if dev, err := border.Driver.Load().Device(int(ordinal)); err == nil {
		dev.CancelKernels()
	}
}

// cudagoKeepKernelsOf says that the reset for which cudagoCancelKernelsOf was
// called has been given up.
//
//export cudagoKeepKernelsOf
func cudagoKeepKernelsOf(ordinal C.int32_t) {
	if dev, err := border.Driver.Load().Device(int(ordinal)); err == nil {
		dev.KeepKernels()
	}
}
