/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

#include "_cgo_export.h"

cudago_calls cu;

/* Drivers without C entry points (simulated, fault, trace) are reached through Go. */
void cudago_trampolines(cudago_calls *c) {
    *c = (cudago_calls){
        .cuGraphLaunch = cudagoRawGraphLaunch,
        .cuLaunchKernelEx = (void *)cudagoRawLaunchKernelEx,
        .cuEventRecord = cudagoRawEventRecord,
        .cuEventQuery = cudagoRawEventQuery,
        .cuStreamWaitEvent = cudagoRawStreamWaitEvent,
        .cuStreamIsCapturing = cudagoRawStreamIsCapturing,
        .cuThreadExchangeStreamCaptureMode = cudagoRawExchangeMode,
        .cuMemAllocFromPoolAsync = cudagoRawMemAllocFromPoolAsync,
        .cuMemFreeAsync = cudagoRawMemFreeAsync,
        .cuMemcpyAsync = cudagoRawMemcpyAsync,
        .cuCtxGetCurrent = cudagoRawCtxGetCurrent,
        .cuCtxPushCurrent = cudagoRawCtxPushCurrent,
        .cuCtxPopCurrent = cudagoRawCtxPopCurrent,
    };
}
