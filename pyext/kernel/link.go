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

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// linkOptions come from _kernel/linker.py.
type linkOptions struct {
	cuda.LinkOptions
	Codes []uint64
}

//export cudagoLink
func cudagoLink(ordinal C.int32_t, target, options *C.char, outKind, log **C.char, st *C.cudago_status) (id C.uint64_t) {
	guard(st, func() error {
		var o linkOptions
		if err := json.Unmarshal([]byte(C.GoString(options)), &o); err != nil {
			return err
		}
		dev, err := border.Driver.Load().Device(int(ordinal))
		if err != nil {
			return err
		}
		var codes []*cuda.ObjectCode
		for _, number := range o.Codes {
			code, err := Codes.Get(number)
			if err != nil {
				return err
			}
			codes = append(codes, code)
		}
		made, err := border.Driver.Load().Link(dev, codes, o.LinkOptions, C.GoString(target))
		if err != nil {
			return err
		}
		*outKind, *log = C.CString(made.Kind), C.CString(made.Log)
		id = C.uint64_t(Codes.Put(made))
		return nil
	})
	return id
}
