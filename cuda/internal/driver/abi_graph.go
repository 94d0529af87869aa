// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"structs"
	"unsafe"
)

// CUgraphNodeType is the kind of a node. From cuda.h, CUDA 12.6.
type CUgraphNodeType int32

const (
	CU_GRAPH_NODE_TYPE_KERNEL           CUgraphNodeType = 0
	CU_GRAPH_NODE_TYPE_MEMCPY           CUgraphNodeType = 1
	CU_GRAPH_NODE_TYPE_MEMSET           CUgraphNodeType = 2
	CU_GRAPH_NODE_TYPE_HOST             CUgraphNodeType = 3
	CU_GRAPH_NODE_TYPE_GRAPH            CUgraphNodeType = 4
	CU_GRAPH_NODE_TYPE_EMPTY            CUgraphNodeType = 5
	CU_GRAPH_NODE_TYPE_WAIT_EVENT       CUgraphNodeType = 6
	CU_GRAPH_NODE_TYPE_EVENT_RECORD     CUgraphNodeType = 7
	CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL CUgraphNodeType = 8
	CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT   CUgraphNodeType = 9
	CU_GRAPH_NODE_TYPE_MEM_ALLOC        CUgraphNodeType = 10
	CU_GRAPH_NODE_TYPE_MEM_FREE         CUgraphNodeType = 11
	CU_GRAPH_NODE_TYPE_BATCH_MEM_OP     CUgraphNodeType = 12
	CU_GRAPH_NODE_TYPE_CONDITIONAL      CUgraphNodeType = 13
)

// CUDA_KERNEL_NODE_PARAMS is CUDA_KERNEL_NODE_PARAMS_v2. From cuda.h, CUDA
// 12.4: 72 bytes.
type CUDA_KERNEL_NODE_PARAMS struct {
	_              structs.HostLayout
	Func           CUfunction
	GridDimX       uint32
	GridDimY       uint32
	GridDimZ       uint32
	BlockDimX      uint32
	BlockDimY      uint32
	BlockDimZ      uint32
	SharedMemBytes uint32
	_              [4]byte
	KernelParams   unsafe.Pointer // void**, one pointer per parameter
	Extra          unsafe.Pointer // void**, or nil
	Kern           uintptr        // CUkernel, or zero
	Ctx            CUcontext      // zero: the current one
}

// CUDA_MEMCPY3D describes a copy. From cuda.h, CUDA 12.4: 200 bytes. A copy of
// n bytes has WidthInBytes n, Height 1, Depth 1 and memory type UNIFIED with
// the addresses in SrcDevice and DstDevice; pageable host memory has type HOST
// with the address in SrcHost or DstHost.
type CUDA_MEMCPY3D struct {
	_             structs.HostLayout
	SrcXInBytes   uint64
	SrcY          uint64
	SrcZ          uint64
	SrcLOD        uint64
	SrcMemoryType CUmemorytype
	_             [4]byte
	SrcHost       uintptr
	SrcDevice     CUdeviceptr
	SrcArray      CUarray
	_             uintptr
	SrcPitch      uint64
	SrcHeight     uint64
	DstXInBytes   uint64
	DstY          uint64
	DstZ          uint64
	DstLOD        uint64
	DstMemoryType CUmemorytype
	_             [4]byte
	DstHost       uintptr
	DstDevice     CUdeviceptr
	DstArray      CUarray
	_             uintptr
	DstPitch      uint64
	DstHeight     uint64
	WidthInBytes  uint64
	Height        uint64
	Depth         uint64
}

// CUDA_MEMSET_NODE_PARAMS describes a fill. From cuda.h, CUDA 12.4: 40 bytes
// (CUDA_MEMSET_NODE_PARAMS_v1: the context is a parameter of its own).
type CUDA_MEMSET_NODE_PARAMS struct {
	_           structs.HostLayout
	Dst         CUdeviceptr
	Pitch       uint64
	Value       uint32
	ElementSize uint32 // 1, 2 or 4
	Width       uint64 // elements in a row
	Height      uint64
}

// CUDA_HOST_NODE_PARAMS describes a call on the host. From cuda.h, CUDA 12.4.
type CUDA_HOST_NODE_PARAMS struct {
	_        structs.HostLayout
	Fn       CUhostFn
	UserData uintptr
}

// CUDA_MEM_ALLOC_NODE_PARAMS describes an allocation. From cuda.h, CUDA 12.4:
// 120 bytes (CUDA_MEM_ALLOC_NODE_PARAMS_v1).
type CUDA_MEM_ALLOC_NODE_PARAMS struct {
	_               structs.HostLayout
	PoolProps       CUmemPoolProps
	AccessDescs     unsafe.Pointer // of AccessDescCount CUmemAccessDesc
	AccessDescCount uint64
	Bytesize        uint64
	Dptr            CUdeviceptr // out
}

// CUgraphConditionalHandle names a condition, for kernels too. From cuda.h,
// CUDA 12.4.
type CUgraphConditionalHandle uint64

// CU_GRAPH_COND_ASSIGN_DEFAULT sets the condition to its default value at each
// launch. From cuda.h, CUDA 12.4.
const CU_GRAPH_COND_ASSIGN_DEFAULT uint32 = 1

// CUgraphConditionalNodeType is how a condition selects bodies. From cuda.h,
// CUDA 12.8.
// CUgraphEdgeData says what an edge waits for; zero is a standard dependency on
// the whole of a node. From cuda.h, CUDA 12.4: 8 bytes.
type CUgraphEdgeData struct {
	_        structs.HostLayout
	FromPort uint8 // CU_GRAPH_KERNEL_NODE_PORT_*; zero for other nodes than kernels
	ToPort   uint8 // zero
	Type     uint8 // CU_GRAPH_DEPENDENCY_TYPE_*
	_        [5]byte
}

// Ports of kernel nodes, and types of edges. From cuda.h, CUDA 12.4.
const (
	CU_GRAPH_KERNEL_NODE_PORT_DEFAULT      uint8 = 0
	CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC uint8 = 1
	CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER uint8 = 2

	CU_GRAPH_DEPENDENCY_TYPE_DEFAULT      uint8 = 0
	CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC uint8 = 1
)

type CUgraphConditionalNodeType int32

const (
	CU_GRAPH_COND_TYPE_IF     CUgraphConditionalNodeType = 0
	CU_GRAPH_COND_TYPE_WHILE  CUgraphConditionalNodeType = 1
	CU_GRAPH_COND_TYPE_SWITCH CUgraphConditionalNodeType = 2
)

// CUDA_CONDITIONAL_NODE_PARAMS describes a conditional node. From cuda.h, CUDA
// 12.4: 32 bytes.
type CUDA_CONDITIONAL_NODE_PARAMS struct {
	_           structs.HostLayout
	Handle      CUgraphConditionalHandle
	Type        CUgraphConditionalNodeType
	Size        uint32  // bodies
	PhGraph_out uintptr // of Size CUgraph; the driver's
	Ctx         CUcontext
}

// CUgraphChildGraphNodeOwnership says whether a child graph node runs a copy of
// the graph, or the graph itself, which is the parent's from then on. From
// cuda.h, CUDA 12.9; older drivers make a copy, whatever it says.
type CUgraphChildGraphNodeOwnership int32

const (
	CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE CUgraphChildGraphNodeOwnership = 0
	CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE  CUgraphChildGraphNodeOwnership = 1
)

// CUDA_CHILD_GRAPH_NODE_PARAMS describes a child graph node. From cuda.h, CUDA
// 12.9: 16 bytes.
type CUDA_CHILD_GRAPH_NODE_PARAMS struct {
	_         structs.HostLayout
	Graph     CUgraph
	Ownership CUgraphChildGraphNodeOwnership
	_         [4]byte
}

// ChildGraphNode returns the parameters of a child graph node: in the union they
// have the places of the first two members of a conditional node's.
func ChildGraphNode(p CUDA_CHILD_GRAPH_NODE_PARAMS) *CUgraphNodeParams {
	return &CUgraphNodeParams{Type: CU_GRAPH_NODE_TYPE_GRAPH, Conditional: CUDA_CONDITIONAL_NODE_PARAMS{
		Handle: CUgraphConditionalHandle(p.Graph), Type: CUgraphConditionalNodeType(p.Ownership),
	}}
}

// ChildGraph undoes [ChildGraphNode].
func (p *CUgraphNodeParams) ChildGraph() CUDA_CHILD_GRAPH_NODE_PARAMS {
	return CUDA_CHILD_GRAPH_NODE_PARAMS{
		Graph: CUgraph(p.Conditional.Handle), Ownership: CUgraphChildGraphNodeOwnership(p.Conditional.Type),
	}
}

// CUgraphNodeParams is a node of any kind; of the union's members only that of
// conditional nodes is described here. From cuda.h, CUDA 12.4: 256 bytes.
type CUgraphNodeParams struct {
	_           structs.HostLayout
	Type        CUgraphNodeType
	_           [12]byte
	Conditional CUDA_CONDITIONAL_NODE_PARAMS
	_           [200]byte
	_           int64
}

// Flags of CUDA_GRAPH_INSTANTIATE_PARAMS. From cuda.h, CUDA 12.4.
const (
	CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH uint64 = 1
	CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD              uint64 = 2
	CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH       uint64 = 4
	CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY   uint64 = 8
)

// CUgraphInstantiateResult is why an instantiation failed. From cuda.h, CUDA 12.4.
type CUgraphInstantiateResult int32

const (
	CUDA_GRAPH_INSTANTIATE_SUCCESS                      CUgraphInstantiateResult = 0
	CUDA_GRAPH_INSTANTIATE_ERROR                        CUgraphInstantiateResult = 1
	CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE            CUgraphInstantiateResult = 2
	CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED CUgraphInstantiateResult = 3
	CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED  CUgraphInstantiateResult = 4
	CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED    CUgraphInstantiateResult = 5
)

// CUDA_GRAPH_INSTANTIATE_PARAMS is in and out. From cuda.h, CUDA 12.4: 32 bytes.
type CUDA_GRAPH_INSTANTIATE_PARAMS struct {
	_             structs.HostLayout
	Flags         uint64
	HUploadStream CUstream
	HErrNode_out  CUgraphNode
	Result_out    CUgraphInstantiateResult
	_             [4]byte
}

// CUgraphExecUpdateResult is why an update failed. From cuda.h, CUDA 12.4.
type CUgraphExecUpdateResult int32

const (
	CU_GRAPH_EXEC_UPDATE_SUCCESS                           CUgraphExecUpdateResult = 0
	CU_GRAPH_EXEC_UPDATE_ERROR                             CUgraphExecUpdateResult = 1
	CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED            CUgraphExecUpdateResult = 2
	CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED           CUgraphExecUpdateResult = 3
	CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED            CUgraphExecUpdateResult = 4
	CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED          CUgraphExecUpdateResult = 5
	CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED               CUgraphExecUpdateResult = 6
	CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE CUgraphExecUpdateResult = 7
	CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED          CUgraphExecUpdateResult = 8
)

// CUgraphExecUpdateResultInfo is where an update failed, and why. From cuda.h, CUDA 12.4.
type CUgraphExecUpdateResultInfo struct {
	_             structs.HostLayout
	Result        CUgraphExecUpdateResult
	_             [4]byte
	ErrorNode     CUgraphNode
	ErrorFromNode CUgraphNode
}
