// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"testing"
	"unsafe"
)

// Sizes and offsets of a C compiler on cuda.h, CUDA 13.5, x86-64.
func TestLayouts(t *testing.T) {
	var (
		pool   CUmemPoolProps
		attr   CUlaunchAttribute
		event  CUlaunchEvent
		config CUlaunchConfig
		kernel CUDA_KERNEL_NODE_PARAMS
		memcpy CUDA_MEMCPY3D
		memset CUDA_MEMSET_NODE_PARAMS
		memop  CUstreamBatchMemOpParams
		batch  CUDA_BATCH_MEM_OP_NODE_PARAMS
		inst   CUDA_GRAPH_INSTANTIATE_PARAMS
		update CUgraphExecUpdateResultInfo
		prop   CUmemAllocationProp
		access CUmemAccessDesc
		alloc  CUDA_MEM_ALLOC_NODE_PARAMS
		node   CUgraphNodeParams
		edge   CUgraphEdgeData
		child  CUDA_CHILD_GRAPH_NODE_PARAMS
		choice CUDA_CONDITIONAL_NODE_PARAMS
		sms    CUdevResource
		data   CUmemPoolPtrExportData
		ipc    CUipcEventHandle
		tiles  CUtensorMap
		copies CUmemcpyAttributes
		array  CUDA_ARRAY3D_DESCRIPTOR
		image  CUDA_RESOURCE_DESC
		tex    CUDA_TEXTURE_DESC
		view   CUDA_RESOURCE_VIEW_DESC
	)
	tests := []struct {
		name      string
		got, want uintptr
	}{
		{"CUmemPoolProps", unsafe.Sizeof(pool), 88},
		{"CUtensorMap", unsafe.Sizeof(tiles), 128},
		{"CUDA_ARRAY3D_DESCRIPTOR", unsafe.Sizeof(array), 40},
		{"CUDA_ARRAY3D_DESCRIPTOR.Flags", unsafe.Offsetof(array.Flags), 32},
		{"CUDA_RESOURCE_DESC.res.array.hArray", unsafe.Offsetof(image.DevPtr), 8},
		{"CUDA_RESOURCE_DESC", unsafe.Sizeof(image), 144},
		{"CUDA_RESOURCE_DESC.res.pitch2D.pitchInBytes", unsafe.Offsetof(image.PitchInBytes), 40},
		{"CUDA_RESOURCE_DESC.flags", unsafe.Offsetof(image.Flags), 136},
		{"CUDA_TEXTURE_DESC", unsafe.Sizeof(tex), 104},
		{"CUDA_TEXTURE_DESC.borderColor", unsafe.Offsetof(tex.BorderColor), 40},
		{"CUDA_RESOURCE_VIEW_DESC", unsafe.Sizeof(view), 112},
		{"CUmemPoolProps.maxSize", unsafe.Offsetof(pool.MaxSize), 24},
		{"CUlaunchAttribute", unsafe.Sizeof(attr), 72},
		{"CUlaunchAttribute.value", unsafe.Offsetof(attr.Value), 8},
		{"CUlaunchAttributeValue.programmaticEvent", unsafe.Sizeof(event), 16},
		{"CUlaunchAttributeValue.programmaticEvent.flags", unsafe.Offsetof(event.Flags), 8},
		{"CUlaunchAttributeValue.programmaticEvent.triggerAtBlockStart", unsafe.Offsetof(event.TriggerAtBlockStart), 12},
		{"CUlaunchConfig", unsafe.Sizeof(config), 56},
		{"CUlaunchConfig.hStream", unsafe.Offsetof(config.HStream), 32},
		{"CUlaunchConfig.attrs", unsafe.Offsetof(config.Attrs), 40},
		{"CUDA_KERNEL_NODE_PARAMS", unsafe.Sizeof(kernel), 72},
		{"CUDA_KERNEL_NODE_PARAMS.kernelParams", unsafe.Offsetof(kernel.KernelParams), 40},
		{"CUDA_MEMCPY3D", unsafe.Sizeof(memcpy), 200},
		{"CUDA_MEMCPY3D.dstDevice", unsafe.Offsetof(memcpy.DstDevice), 136},
		{"CUDA_MEMCPY3D.WidthInBytes", unsafe.Offsetof(memcpy.WidthInBytes), 176},
		{"CUDA_MEMSET_NODE_PARAMS", unsafe.Sizeof(memset), 40},
		{"CUstreamBatchMemOpParams", unsafe.Sizeof(memop), 48},
		{"CUstreamBatchMemOpParams.waitValue.address", unsafe.Offsetof(memop.Address), 8},
		{"CUstreamBatchMemOpParams.waitValue.value", unsafe.Offsetof(memop.Value), 16},
		{"CUstreamBatchMemOpParams.waitValue.flags", unsafe.Offsetof(memop.Flags), 24},
		{"CUDA_BATCH_MEM_OP_NODE_PARAMS", unsafe.Sizeof(batch), 32},
		{"CUDA_BATCH_MEM_OP_NODE_PARAMS.paramArray", unsafe.Offsetof(batch.ParamArray), 16},
		{"CUDA_BATCH_MEM_OP_NODE_PARAMS.flags", unsafe.Offsetof(batch.Flags), 24},
		{"CUDA_GRAPH_INSTANTIATE_PARAMS", unsafe.Sizeof(inst), 32},
		{"CUgraphExecUpdateResultInfo", unsafe.Sizeof(update), 24},
		{"CUmemLocation", unsafe.Sizeof(prop.Location), 8},
		{"CUmemAllocationProp", unsafe.Sizeof(prop), 32},
		{"CUmemAllocationProp.location", unsafe.Offsetof(prop.Location), 8},
		{"CUmemAllocationProp.win32HandleMetaData", unsafe.Offsetof(prop.Win32HandleMetaData), 16},
		{"CUmemAllocationProp.allocFlags.usage", unsafe.Offsetof(prop.Usage), 26},
		{"CUDA_MEM_ALLOC_NODE_PARAMS", unsafe.Sizeof(alloc), 120},
		{"CUDA_MEM_ALLOC_NODE_PARAMS.dptr", unsafe.Offsetof(alloc.Dptr), 112},
		{"CUDA_CONDITIONAL_NODE_PARAMS", unsafe.Sizeof(node.Conditional), 32},
		{"CUDA_CONDITIONAL_NODE_PARAMS.phGraph_out", unsafe.Offsetof(node.Conditional.PhGraph_out), 16},
		{"CUgraphEdgeData", unsafe.Sizeof(edge), 8},
		{"CUgraphEdgeData.type", unsafe.Offsetof(edge.Type), 2},
		{"CUgraphNodeParams", unsafe.Sizeof(node), 256},
		{"CUgraphNodeParams.conditional", unsafe.Offsetof(node.Conditional), 16},
		{"CUDA_CHILD_GRAPH_NODE_PARAMS", unsafe.Sizeof(child), 16},
		{"CUDA_CHILD_GRAPH_NODE_PARAMS.ownership", unsafe.Offsetof(child.Ownership), unsafe.Offsetof(choice.Type)},
		{"CUdevResource", unsafe.Sizeof(sms), 144},
		{"CUdevResource.sm", unsafe.Offsetof(sms.SmCount), 96},
		{"CUdevResource.sm.smCoscheduledAlignment", unsafe.Offsetof(sms.SmCoscheduledAlignment), 104},
		{"CUmemPoolPtrExportData", unsafe.Sizeof(data), 64},
		{"CUmemcpyAttributes", unsafe.Sizeof(copies), 24},
		{"CUmemcpyAttributes.dstLocHint", unsafe.Offsetof(copies.DstLocHint), 12},
		{"CUipcEventHandle", unsafe.Sizeof(ipc), 64},
		{"CUmemAccessDesc", unsafe.Sizeof(access), 12},
		{"CUmemAccessDesc.flags", unsafe.Offsetof(access.Flags), 8},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, tt.got, tt.want)
		}
	}
}
