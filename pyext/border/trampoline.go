// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

/*
#include "border.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// The hot calls that ztrampoline.go does not have, for drivers without C entry
// points. No guard: a panic below the seam ends in recoverRaw, and the caller
// sees CUDA_ERROR_UNKNOWN.

func recoverRaw(r *C.CUresult) {
	if p := recover(); p != nil {
		*r = C.CUDA_ERROR_UNKNOWN
		ReportAside(panicError{p})
	}
}

type panicError struct{ value any }

func (e panicError) Error() string { return "panic in a driver call: " + fmt.Sprint(e.value) }

//export cudagoRawLaunchKernelEx
func cudagoRawLaunchKernelEx(config *C.CUlaunchConfig, f C.CUfunction, params, extra *unsafe.Pointer) (r C.CUresult) {
	defer recoverRaw(&r)
	return C.CUresult(Driver.Load().RawLaunchKernelEx(unsafe.Pointer(config), uintptr(f), unsafe.Pointer(params)))
}

// cudagoRawStreamGetCaptureInfo has no memory of its own for the dependencies, as
// a driver has: what deps points to must point to room for one, and stays so.
// There are no edges.
//
//export cudagoRawStreamGetCaptureInfo
func cudagoRawStreamGetCaptureInfo(s C.CUstream, status *C.CUstreamCaptureStatus, id *C.ulonglong, g *C.CUgraph,
	deps **C.CUgraphNode, edges **C.CUgraphEdgeData, n *C.size_t) (r C.CUresult) {
	defer recoverRaw(&r)
	return C.CUresult(Driver.Load().RawStreamGetCaptureInfo(uintptr(s), (*int32)(status), (*uint64)(unsafe.Pointer(id)),
		(*uintptr)(unsafe.Pointer(g)), (*uintptr)(unsafe.Pointer(*deps)), (*uint64)(unsafe.Pointer(n))))
}

//export cudagoRawThreadExchangeStreamCaptureMode
func cudagoRawThreadExchangeStreamCaptureMode(mode *C.CUstreamCaptureMode) (r C.CUresult) {
	defer recoverRaw(&r)
	return C.CUresult(Driver.Load().RawThreadExchangeStreamCaptureMode((*int32)(mode)))
}

//export cudagoRawGraphAddKernelNode
func cudagoRawGraphAddKernelNode(node *C.CUgraphNode, g C.CUgraph, deps *C.CUgraphNode, n C.size_t, params *C.CUDA_KERNEL_NODE_PARAMS) (r C.CUresult) {
	defer recoverRaw(&r)
	return C.CUresult(Driver.Load().RawGraphAddKernelNode((*uintptr)(unsafe.Pointer(node)), uintptr(g),
		unsafe.Slice((*uintptr)(unsafe.Pointer(deps)), int(n)), unsafe.Pointer(params)))
}

//export cudagoRawGraphAddMemcpyNode
func cudagoRawGraphAddMemcpyNode(node *C.CUgraphNode, g C.CUgraph, deps *C.CUgraphNode, n C.size_t, params *C.CUDA_MEMCPY3D,
	ctx C.CUcontext) (r C.CUresult) {
	defer recoverRaw(&r)
	return C.CUresult(Driver.Load().RawGraphAddMemcpyNode((*uintptr)(unsafe.Pointer(node)), uintptr(g),
		unsafe.Slice((*uintptr)(unsafe.Pointer(deps)), int(n)), unsafe.Pointer(params), uintptr(ctx)))
}

//export cudagoRawGraphExecKernelNodeSetParams
func cudagoRawGraphExecKernelNodeSetParams(x C.CUgraphExec, node C.CUgraphNode, params *C.CUDA_KERNEL_NODE_PARAMS) (r C.CUresult) {
	defer recoverRaw(&r)
	return C.CUresult(Driver.Load().RawGraphExecKernelNodeSetParams(uintptr(x), uintptr(node), unsafe.Pointer(params)))
}

//export cudagoRawGraphExecMemcpyNodeSetParams
func cudagoRawGraphExecMemcpyNodeSetParams(x C.CUgraphExec, node C.CUgraphNode, params *C.CUDA_MEMCPY3D, ctx C.CUcontext) (r C.CUresult) {
	defer recoverRaw(&r)
	return C.CUresult(Driver.Load().RawGraphExecMemcpyNodeSetParams(uintptr(x), uintptr(node), unsafe.Pointer(params), uintptr(ctx)))
}
