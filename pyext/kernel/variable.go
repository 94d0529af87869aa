// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package kernel

/*
#include "kernel.h"
*/
import "C"

import (
	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// holders are the modules that variables keep loaded, one for each Buffer that
// Python was given.
var holders = border.NewTable[*cuda.Module]("variable")

// cudagoVariable finds a variable of a code on a device, and holds the module.
//
//export cudagoVariable
func cudagoVariable(
	code C.uint64_t, name *C.char, n C.int, ordinal C.int32_t, callback C.int, ptr, size *C.uint64_t,
	constant, managed *C.int32_t, st *C.cudago_status,
) (id C.uint64_t) {
	guard(st, func() error {
		o, err := Codes.Get(uint64(code))
		if err != nil {
			return err
		}
		dev, err := deviceToLoadOn(o, int(ordinal), callback != 0)
		if err != nil {
			return err
		}
		m, err := o.Load(dev)
		if err != nil {
			return err
		}
		if err := m.Retain(); err != nil {
			return err
		}
		v, err := m.Global(C.GoStringN(name, n))
		if err != nil {
			m.Release()
			return err
		}
		*ptr, *size = C.uint64_t(v.Ptr), C.uint64_t(v.Size)
		*constant, *managed = border.Bool[C.int32_t](v.Constant), border.Bool[C.int32_t](v.Managed)
		id = C.uint64_t(holders.Put(m))
		return nil
	})
	return id
}

// cudagoVariableRelease leaves the module to the reaper: unloading it waits for
// the device.
//
//export cudagoVariableRelease
func cudagoVariableRelease(id C.uint64_t) {
	if m, ok := holders.Take(uint64(id)); ok {
		border.Reaper.Add(border.Once(func() error {
			m.Release()
			return nil
		}))
	}
}
