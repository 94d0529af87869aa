// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// entry is one driver call: what cuGetProcAddress is asked for.
//
// version is the CUDA version that introduced the signature in calls.h, as
// cudaTypedefs.h, CUDA 13.5, gives it (PFN_cuGraphLaunch_v10000); a newer one
// would be another signature (cuEventElapsedTime at 12080 is). suffix is what
// the exported name of that signature ends in, for a driver library without
// cuGetProcAddress.
type entry struct {
	name     string
	version  int
	suffix   string
	required bool
}

const (
	required = true
	optional = false
)

// The driver calls, as indices into entries and Driver.fn.
const (
	cuInit = iota
	cuDriverGetVersion
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceGetUuid
	cuDeviceTotalMem
	cuDeviceGetAttribute
	cuDeviceGetPCIBusId
	cuDeviceCanAccessPeer

	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuDevicePrimaryCtxReset
	cuCtxGetCurrent
	cuCtxSetCurrent
	cuCtxPushCurrent
	cuCtxPopCurrent
	cuCtxGetDevice
	cuCtxSynchronize
	cuCtxGetStreamPriorityRange
	cuCtxEnablePeerAccess
	cuCtxDisablePeerAccess

	cuStreamCreateWithPriority
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamQuery
	cuStreamWaitEvent
	cuStreamGetPriority
	cuStreamGetFlags
	cuStreamGetId
	cuStreamGetCtx
	cuLaunchHostFunc
	cuStreamBeginCapture
	cuStreamEndCapture
	cuStreamIsCapturing
	cuStreamGetCaptureInfo
	cuThreadExchangeStreamCaptureMode

	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventQuery
	cuEventSynchronize
	cuEventElapsedTime

	cuMemGetInfo
	cuMemAlloc
	cuMemFree
	cuMemAllocAsync
	cuMemAllocFromPoolAsync
	cuMemFreeAsync
	cuMemHostAlloc
	cuMemFreeHost
	cuMemAllocManaged
	cuMemHostRegister
	cuMemHostUnregister
	cuMemAdvise
	cuMemPrefetchAsync
	cuMemRangeGetAttribute
	cuDeviceGetDefaultMemPool
	cuMemPoolCreate
	cuMemPoolDestroy
	cuMemPoolTrimTo
	cuMemPoolSetAttribute
	cuMemPoolGetAttribute
	cuMemPoolSetAccess
	cuMemPoolGetAccess
	cuMemcpyAsync
	cuMemsetD8Async
	cuMemsetD16Async
	cuMemsetD32Async
	cuPointerGetAttribute
	cuMemGetAddressRange

	cuMemGetAllocationGranularity
	cuMemAddressReserve
	cuMemAddressFree
	cuMemCreate
	cuMemRelease
	cuMemMap
	cuMemUnmap
	cuMemSetAccess

	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuModuleGetGlobal
	cuModuleGetFunctionCount
	cuModuleEnumerateFunctions
	cuFuncGetName
	cuFuncGetAttribute
	cuFuncSetAttribute
	cuFuncGetParamInfo
	cuOccupancyMaxActiveBlocksPerMultiprocessor
	cuLaunchKernel
	cuLaunchKernelEx

	cuGraphCreate
	cuGraphDestroy
	cuGraphClone
	cuGraphNodeFindInClone
	cuGraphAddKernelNode
	cuGraphAddMemcpyNode
	cuGraphAddMemsetNode
	cuGraphAddHostNode
	cuGraphAddEmptyNode
	cuGraphAddChildGraphNode
	cuGraphAddEventRecordNode
	cuGraphAddEventWaitNode
	cuGraphAddMemAllocNode
	cuGraphAddMemFreeNode
	cuGraphConditionalHandleCreate
	cuGraphAddNode
	cuGraphAddDependencies
	cuGraphRemoveDependencies
	cuGraphDestroyNode
	cuGraphGetNodes
	cuGraphGetEdges
	cuGraphNodeGetType
	cuGraphNodeGetDependencies
	cuGraphKernelNodeGetParams
	cuGraphMemcpyNodeGetParams
	cuGraphMemsetNodeGetParams
	cuGraphHostNodeGetParams
	cuGraphChildGraphNodeGetGraph
	cuGraphKernelNodeSetParams
	cuGraphMemcpyNodeSetParams
	cuGraphMemsetNodeSetParams
	cuGraphHostNodeSetParams

	cuGraphInstantiateWithParams
	cuGraphExecDestroy
	cuGraphLaunch
	cuGraphUpload
	cuGraphExecUpdate
	cuGraphExecKernelNodeSetParams
	cuGraphExecMemcpyNodeSetParams
	cuGraphExecMemsetNodeSetParams
	cuGraphExecHostNodeSetParams
	cuGraphNodeSetEnabled
	cuGraphNodeGetEnabled

	entryCount
)

// entries lists every call that is looked up. Optional are those that came
// with the oldest CUDA version that is supported (12.4) or shortly before it: without
// one of them, the rest is still of use.
var entries = [entryCount]entry{
	cuInit:                {"cuInit", 2000, "", required},
	cuDriverGetVersion:    {"cuDriverGetVersion", 2020, "", required},
	cuDeviceGetCount:      {"cuDeviceGetCount", 2000, "", required},
	cuDeviceGet:           {"cuDeviceGet", 2000, "", required},
	cuDeviceGetName:       {"cuDeviceGetName", 2000, "", required},
	cuDeviceGetUuid:       {"cuDeviceGetUuid", 11040, "_v2", required},
	cuDeviceTotalMem:      {"cuDeviceTotalMem", 3020, "_v2", required},
	cuDeviceGetAttribute:  {"cuDeviceGetAttribute", 2000, "", required},
	cuDeviceGetPCIBusId:   {"cuDeviceGetPCIBusId", 4010, "", required},
	cuDeviceCanAccessPeer: {"cuDeviceCanAccessPeer", 4000, "", required},

	cuDevicePrimaryCtxRetain:    {"cuDevicePrimaryCtxRetain", 7000, "", required},
	cuDevicePrimaryCtxRelease:   {"cuDevicePrimaryCtxRelease", 11000, "_v2", required},
	cuDevicePrimaryCtxReset:     {"cuDevicePrimaryCtxReset", 11000, "_v2", required},
	cuCtxGetCurrent:             {"cuCtxGetCurrent", 4000, "", required},
	cuCtxSetCurrent:             {"cuCtxSetCurrent", 4000, "", required},
	cuCtxPushCurrent:            {"cuCtxPushCurrent", 4000, "_v2", required},
	cuCtxPopCurrent:             {"cuCtxPopCurrent", 4000, "_v2", required},
	cuCtxGetDevice:              {"cuCtxGetDevice", 2000, "", required},
	cuCtxSynchronize:            {"cuCtxSynchronize", 2000, "", required},
	cuCtxGetStreamPriorityRange: {"cuCtxGetStreamPriorityRange", 5050, "", required},
	cuCtxEnablePeerAccess:       {"cuCtxEnablePeerAccess", 4000, "", required},
	cuCtxDisablePeerAccess:      {"cuCtxDisablePeerAccess", 4000, "", required},

	cuStreamCreateWithPriority:        {"cuStreamCreateWithPriority", 5050, "", required},
	cuStreamDestroy:                   {"cuStreamDestroy", 4000, "_v2", required},
	cuStreamSynchronize:               {"cuStreamSynchronize", 2000, "", required},
	cuStreamQuery:                     {"cuStreamQuery", 2000, "", required},
	cuStreamWaitEvent:                 {"cuStreamWaitEvent", 3020, "", required},
	cuStreamGetPriority:               {"cuStreamGetPriority", 5050, "", required},
	cuStreamGetFlags:                  {"cuStreamGetFlags", 5050, "", required},
	cuStreamGetId:                     {"cuStreamGetId", 12000, "", required},
	cuStreamGetCtx:                    {"cuStreamGetCtx", 9020, "", required},
	cuLaunchHostFunc:                  {"cuLaunchHostFunc", 10000, "", required},
	cuStreamBeginCapture:              {"cuStreamBeginCapture", 10010, "_v2", required},
	cuStreamEndCapture:                {"cuStreamEndCapture", 10000, "", required},
	cuStreamIsCapturing:               {"cuStreamIsCapturing", 10000, "", required},
	cuStreamGetCaptureInfo:            {"cuStreamGetCaptureInfo", 12030, "_v3", required},
	cuThreadExchangeStreamCaptureMode: {"cuThreadExchangeStreamCaptureMode", 10010, "", required},

	cuEventCreate:      {"cuEventCreate", 2000, "", required},
	cuEventDestroy:     {"cuEventDestroy", 4000, "_v2", required},
	cuEventRecord:      {"cuEventRecord", 2000, "", required},
	cuEventQuery:       {"cuEventQuery", 2000, "", required},
	cuEventSynchronize: {"cuEventSynchronize", 2000, "", required},
	cuEventElapsedTime: {"cuEventElapsedTime", 2000, "", required},

	cuMemGetInfo:              {"cuMemGetInfo", 3020, "_v2", required},
	cuMemAlloc:                {"cuMemAlloc", 3020, "_v2", required},
	cuMemFree:                 {"cuMemFree", 3020, "_v2", required},
	cuMemAllocAsync:           {"cuMemAllocAsync", 11020, "", required},
	cuMemAllocFromPoolAsync:   {"cuMemAllocFromPoolAsync", 11020, "", required},
	cuMemFreeAsync:            {"cuMemFreeAsync", 11020, "", required},
	cuMemHostAlloc:            {"cuMemHostAlloc", 2020, "", required},
	cuMemFreeHost:             {"cuMemFreeHost", 2000, "", required},
	cuMemAllocManaged:         {"cuMemAllocManaged", 6000, "", required},
	cuMemHostRegister:         {"cuMemHostRegister", 6050, "_v2", required},
	cuMemHostUnregister:       {"cuMemHostUnregister", 4000, "", required},
	cuMemAdvise:               {"cuMemAdvise", 12020, "_v2", required},
	cuMemPrefetchAsync:        {"cuMemPrefetchAsync", 12020, "_v2", required},
	cuMemRangeGetAttribute:    {"cuMemRangeGetAttribute", 8000, "", required},
	cuDeviceGetDefaultMemPool: {"cuDeviceGetDefaultMemPool", 11020, "", required},
	cuMemPoolCreate:           {"cuMemPoolCreate", 11020, "", required},
	cuMemPoolDestroy:          {"cuMemPoolDestroy", 11020, "", required},
	cuMemPoolTrimTo:           {"cuMemPoolTrimTo", 11020, "", required},
	cuMemPoolSetAttribute:     {"cuMemPoolSetAttribute", 11020, "", required},
	cuMemPoolGetAttribute:     {"cuMemPoolGetAttribute", 11020, "", required},
	cuMemPoolSetAccess:        {"cuMemPoolSetAccess", 11020, "", required},
	cuMemPoolGetAccess:        {"cuMemPoolGetAccess", 11020, "", required},
	cuMemcpyAsync:             {"cuMemcpyAsync", 4000, "", required},
	cuMemsetD8Async:           {"cuMemsetD8Async", 3020, "", required},
	cuMemsetD16Async:          {"cuMemsetD16Async", 3020, "", required},
	cuMemsetD32Async:          {"cuMemsetD32Async", 3020, "", required},
	cuPointerGetAttribute:     {"cuPointerGetAttribute", 4000, "", required},
	cuMemGetAddressRange:      {"cuMemGetAddressRange", 3020, "_v2", required},

	cuMemGetAllocationGranularity: {"cuMemGetAllocationGranularity", 10020, "", required},
	cuMemAddressReserve:           {"cuMemAddressReserve", 10020, "", required},
	cuMemAddressFree:              {"cuMemAddressFree", 10020, "", required},
	cuMemCreate:                   {"cuMemCreate", 10020, "", required},
	cuMemRelease:                  {"cuMemRelease", 10020, "", required},
	cuMemMap:                      {"cuMemMap", 10020, "", required},
	cuMemUnmap:                    {"cuMemUnmap", 10020, "", required},
	cuMemSetAccess:                {"cuMemSetAccess", 10020, "", required},

	cuModuleLoadDataEx:                          {"cuModuleLoadDataEx", 2010, "", required},
	cuModuleUnload:                              {"cuModuleUnload", 2000, "", required},
	cuModuleGetFunction:                         {"cuModuleGetFunction", 2000, "", required},
	cuModuleGetGlobal:                           {"cuModuleGetGlobal", 3020, "_v2", required},
	cuModuleGetFunctionCount:                    {"cuModuleGetFunctionCount", 12040, "", optional},
	cuModuleEnumerateFunctions:                  {"cuModuleEnumerateFunctions", 12040, "", optional},
	cuFuncGetName:                               {"cuFuncGetName", 12030, "", optional},
	cuFuncGetAttribute:                          {"cuFuncGetAttribute", 2020, "", required},
	cuFuncSetAttribute:                          {"cuFuncSetAttribute", 9000, "", required},
	cuFuncGetParamInfo:                          {"cuFuncGetParamInfo", 12040, "", optional},
	cuOccupancyMaxActiveBlocksPerMultiprocessor: {"cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, "", required},
	cuLaunchKernel:                              {"cuLaunchKernel", 4000, "", required},
	cuLaunchKernelEx:                            {"cuLaunchKernelEx", 11060, "", required},

	cuGraphCreate:                  {"cuGraphCreate", 10000, "", required},
	cuGraphDestroy:                 {"cuGraphDestroy", 10000, "", required},
	cuGraphClone:                   {"cuGraphClone", 10000, "", required},
	cuGraphNodeFindInClone:         {"cuGraphNodeFindInClone", 10000, "", required},
	cuGraphAddKernelNode:           {"cuGraphAddKernelNode", 12000, "_v2", required},
	cuGraphAddMemcpyNode:           {"cuGraphAddMemcpyNode", 10000, "", required},
	cuGraphAddMemsetNode:           {"cuGraphAddMemsetNode", 10000, "", required},
	cuGraphAddHostNode:             {"cuGraphAddHostNode", 10000, "", required},
	cuGraphAddEmptyNode:            {"cuGraphAddEmptyNode", 10000, "", required},
	cuGraphAddChildGraphNode:       {"cuGraphAddChildGraphNode", 10000, "", required},
	cuGraphAddEventRecordNode:      {"cuGraphAddEventRecordNode", 11010, "", required},
	cuGraphAddEventWaitNode:        {"cuGraphAddEventWaitNode", 11010, "", required},
	cuGraphAddMemAllocNode:         {"cuGraphAddMemAllocNode", 11040, "", required},
	cuGraphAddMemFreeNode:          {"cuGraphAddMemFreeNode", 11040, "", required},
	cuGraphConditionalHandleCreate: {"cuGraphConditionalHandleCreate", 12030, "", optional},
	cuGraphAddNode:                 {"cuGraphAddNode", 12030, "_v2", optional},
	cuGraphAddDependencies:         {"cuGraphAddDependencies", 10000, "", required},
	cuGraphRemoveDependencies:      {"cuGraphRemoveDependencies", 10000, "", required},
	cuGraphDestroyNode:             {"cuGraphDestroyNode", 10000, "", required},
	cuGraphGetNodes:                {"cuGraphGetNodes", 10000, "", required},
	cuGraphGetEdges:                {"cuGraphGetEdges", 12030, "_v2", required},
	cuGraphNodeGetType:             {"cuGraphNodeGetType", 10000, "", required},
	cuGraphNodeGetDependencies:     {"cuGraphNodeGetDependencies", 12030, "_v2", required},
	cuGraphKernelNodeGetParams:     {"cuGraphKernelNodeGetParams", 12000, "_v2", required},
	cuGraphMemcpyNodeGetParams:     {"cuGraphMemcpyNodeGetParams", 10000, "", required},
	cuGraphMemsetNodeGetParams:     {"cuGraphMemsetNodeGetParams", 10000, "", required},
	cuGraphHostNodeGetParams:       {"cuGraphHostNodeGetParams", 10000, "", required},
	cuGraphChildGraphNodeGetGraph:  {"cuGraphChildGraphNodeGetGraph", 10000, "", required},
	cuGraphKernelNodeSetParams:     {"cuGraphKernelNodeSetParams", 12000, "_v2", required},
	cuGraphMemcpyNodeSetParams:     {"cuGraphMemcpyNodeSetParams", 10000, "", required},
	cuGraphMemsetNodeSetParams:     {"cuGraphMemsetNodeSetParams", 10000, "", required},
	cuGraphHostNodeSetParams:       {"cuGraphHostNodeSetParams", 10000, "", required},

	cuGraphInstantiateWithParams:   {"cuGraphInstantiateWithParams", 12000, "", required},
	cuGraphExecDestroy:             {"cuGraphExecDestroy", 10000, "", required},
	cuGraphLaunch:                  {"cuGraphLaunch", 10000, "", required},
	cuGraphUpload:                  {"cuGraphUpload", 11010, "", required},
	cuGraphExecUpdate:              {"cuGraphExecUpdate", 12000, "_v2", required},
	cuGraphExecKernelNodeSetParams: {"cuGraphExecKernelNodeSetParams", 12000, "_v2", required},
	cuGraphExecMemcpyNodeSetParams: {"cuGraphExecMemcpyNodeSetParams", 10020, "", required},
	cuGraphExecMemsetNodeSetParams: {"cuGraphExecMemsetNodeSetParams", 10020, "", required},
	cuGraphExecHostNodeSetParams:   {"cuGraphExecHostNodeSetParams", 10020, "", required},
	cuGraphNodeSetEnabled:          {"cuGraphNodeSetEnabled", 11060, "", required},
	cuGraphNodeGetEnabled:          {"cuGraphNodeGetEnabled", 11060, "", required},
}
