// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package kernel

/*
#include "kernel.h"
*/
import "C"

import (
	"encoding/json"
	"fmt"

	"github.com/cudago/cudago/cuda"
)

// codeCache is the process's cache of compiled programs. Until compile_cache.py
// has configured it, it keeps nothing.
var codeCache cuda.CodeCache

//export cudagoCodeCache
func cudagoCodeCache(what, config *C.char, st *C.cudago_status) (out *C.char) {
	guard(st, func() error {
		switch word := C.GoString(what); word {
		case "configure":
			var c cuda.CodeCacheConfig
			if err := json.Unmarshal([]byte(C.GoString(config)), &c); err != nil {
				return err
			}
			codeCache.Configure(c)
		case "clear":
			if err := codeCache.Clear(); err != nil {
				out = C.CString(err.Error()) // no error of CUDA's
				return nil
			}
		case "stats":
		default:
			return fmt.Errorf("BUG: the compile cache has no %q", word)
		}
		text, err := json.Marshal(codeCache.Stats())
		out = C.CString(string(text))
		return err
	})
	return out
}
