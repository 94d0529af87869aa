// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package kernel

/*
#include "kernel.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/memory"
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
func cudagoVariableRelease(id C.uint64_t) { variableRelease(uint64(id), nil, nil) }

// cudagoVariableReleaseAfter does so after the uses of the variable. It needs the
// GIL, as [memory.AfterUses] does.
//
//export cudagoVariableReleaseAfter
func cudagoVariableReleaseAfter(id, _ C.uint64_t, others, positions *C.uint64_t, n C.int) {
	slice := func(p *C.uint64_t) []uint64 { return unsafe.Slice((*uint64)(p), int(n)) }
	variableRelease(uint64(id), slice(others), slice(positions))
}

func variableRelease(id uint64, others, positions []uint64) {
	m, ok := holders.Take(id)
	if !ok {
		return
	}
	memory.AfterUses(0, others, positions, func() {
		border.Reaper.Add(border.Once(func() error {
			m.Release()
			return nil
		}))
	})
}
