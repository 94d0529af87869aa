// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import "structs"

// CUarray is an array: memory in a layout that only the driver knows. From
// cuda.h, CUDA 2.0.
type CUarray uintptr

// CUmipmappedArray is an array and smaller ones, its levels. From cuda.h, CUDA 5.0.
type CUmipmappedArray uintptr

// CUsurfObject is a surface object, which a kernel takes by value. From cuda.h,
// CUDA 5.0.
type CUsurfObject uint64

// Flags of CUDA_ARRAY3D_DESCRIPTOR. From cuda.h, CUDA 12.4; there are more.
const (
	CUDA_ARRAY3D_LAYERED      uint32 = 0x01
	CUDA_ARRAY3D_SURFACE_LDST uint32 = 0x02
	CUDA_ARRAY3D_CUBEMAP      uint32 = 0x04
)

// CUDA_ARRAY3D_DESCRIPTOR is what an array has: elements of NumChannels channels,
// Width of them in a row. Height and Depth are 0 where there is no such dimension;
// Depth is the layers of a layered array. From cuda.h, CUDA 12.4: 40 bytes
// (CUDA_ARRAY3D_DESCRIPTOR_v2).
type CUDA_ARRAY3D_DESCRIPTOR struct {
	_           structs.HostLayout
	Width       uint64
	Height      uint64
	Depth       uint64
	Format      CUarray_format
	NumChannels uint32
	Flags       uint32
	_           [4]byte
}
