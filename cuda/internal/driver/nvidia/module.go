// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"bytes"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// jitLogSize is room for the JIT's error log; the driver cuts longer ones.
const jitLogSize = 16 << 10

func (d *binding) CuModuleLoadDataEx(image []byte) (driver.CUmodule, string, driver.CUresult) {
	// The driver finds the end of PTX by a NUL. A cubin or fatbin knows its
	// own size and does not mind one more byte.
	text := make([]byte, len(image)+1)
	copy(text, image)
	log := make([]byte, jitLogSize)
	o := C.cuModuleLoadDataEx(d.fn[cuModuleLoadDataEx],
		unsafe.Pointer(unsafe.SliceData(text)), (*C.char)(unsafe.Pointer(unsafe.SliceData(log))), C.uint32_t(len(log)))
	return driver.CUmodule(o.module), logText(log), driver.CUresult(o.r)
}

// logText cuts log at its NUL. The size that the driver writes back counts it
// on some versions and not on others.
func logText(log []byte) string {
	if end := bytes.IndexByte(log, 0); end >= 0 {
		log = log[:end]
	}
	return string(bytes.TrimSpace(log))
}

func (d *binding) CuModuleFunctionNames(m driver.CUmodule) ([]string, driver.CUresult) {
	count := C.cuModuleGetFunctionCount(d.fn[cuModuleGetFunctionCount], C.CUmodule(m))
	if count.r != 0 || count.value == 0 {
		return nil, driver.CUresult(count.r)
	}
	functions := make([]C.CUfunction, count.value)
	r := C.cuModuleEnumerateFunctions(d.fn[cuModuleEnumerateFunctions],
		&functions[0], C.uint(len(functions)), C.CUmodule(m))
	if r != 0 {
		return nil, driver.CUresult(r)
	}
	names := make([]string, len(functions))
	for i, f := range functions {
		o := C.cuFuncGetName(d.fn[cuFuncGetName], f)
		if o.r != 0 {
			return nil, driver.CUresult(o.r)
		}
		names[i] = C.GoString(o.name)
	}
	return names, driver.CUDA_SUCCESS
}

func (d *binding) CuLaunchKernelEx(config *driver.CUlaunchConfig, f driver.CUfunction, kernelParams unsafe.Pointer) driver.CUresult {
	return driver.CUresult(C.cuLaunchKernelEx(d.fn[cuLaunchKernelEx],
		*(*C.CUlaunchConfig)(unsafe.Pointer(config)), C.CUfunction(f), C.uintptr_t(uintptr(kernelParams))))
}
