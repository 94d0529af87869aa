// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package native

/*
#include "native.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// The driver's hot calls for drivers that have no C entry points. No guard: a
// panic below the seam ends in recoverRaw, and the caller sees
// CUDA_ERROR_UNKNOWN.

const unknownError = 999 // CUDA_ERROR_UNKNOWN

func recoverRaw(r *C.int32_t) {
	if p := recover(); p != nil {
		*r = unknownError
		reportAside(panicError{p})
	}
}

type panicError struct{ value any }

func (e panicError) Error() string { return "panic in a driver call: " + fmt.Sprint(e.value) }

//export cudagoRawGraphLaunch
func cudagoRawGraphLaunch(exec, stream C.uintptr_t) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawGraphLaunch(uintptr(exec), uintptr(stream)))
}

//export cudagoRawLaunchKernelEx
func cudagoRawLaunchKernelEx(config unsafe.Pointer, f C.uintptr_t, params, extra *unsafe.Pointer) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawLaunchKernelEx(config, uintptr(f), unsafe.Pointer(params)))
}

//export cudagoRawEventRecord
func cudagoRawEventRecord(event, stream C.uintptr_t) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawEventRecord(uintptr(event), uintptr(stream)))
}

//export cudagoRawEventQuery
func cudagoRawEventQuery(event C.uintptr_t) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawEventQuery(uintptr(event)))
}

//export cudagoRawStreamWaitEvent
func cudagoRawStreamWaitEvent(stream, event C.uintptr_t, flags C.uint32_t) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawStreamWaitEvent(uintptr(stream), uintptr(event), uint32(flags)))
}

//export cudagoRawStreamIsCapturing
func cudagoRawStreamIsCapturing(stream C.uintptr_t, status *C.int32_t) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawStreamIsCapturing(uintptr(stream), (*int32)(status)))
}

//export cudagoRawExchangeMode
func cudagoRawExchangeMode(mode *C.int32_t) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawThreadExchangeStreamCaptureMode((*int32)(mode)))
}

//export cudagoRawMemAllocFromPoolAsync
func cudagoRawMemAllocFromPoolAsync(out *C.uint64_t, size C.size_t, pool, stream C.uintptr_t) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawMemAllocFromPoolAsync((*uint64)(out), uint64(size), uintptr(pool), uintptr(stream)))
}

//export cudagoRawMemFreeAsync
func cudagoRawMemFreeAsync(ptr C.uint64_t, stream C.uintptr_t) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawMemFreeAsync(uint64(ptr), uintptr(stream)))
}

//export cudagoRawMemcpyAsync
func cudagoRawMemcpyAsync(dst, src C.uint64_t, size C.size_t, stream C.uintptr_t) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawMemcpyAsync(uint64(dst), uint64(src), uint64(size), uintptr(stream)))
}

//export cudagoRawCtxGetCurrent
func cudagoRawCtxGetCurrent(ctx *C.uintptr_t) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawCtxGetCurrent((*uintptr)(unsafe.Pointer(ctx))))
}

//export cudagoRawCtxPushCurrent
func cudagoRawCtxPushCurrent(ctx C.uintptr_t) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawCtxPushCurrent(uintptr(ctx)))
}

//export cudagoRawCtxPopCurrent
func cudagoRawCtxPopCurrent(ctx *C.uintptr_t) (r C.int32_t) {
	defer recoverRaw(&r)
	return C.int32_t(drv.Load().RawCtxPopCurrent((*uintptr)(unsafe.Pointer(ctx))))
}
