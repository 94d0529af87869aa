// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import "structs"

// CUtexObject is a texture object, which a kernel takes by value. From cuda.h,
// CUDA 5.0.
type CUtexObject uint64

// CUresourcetype is what a texture reads. From cuda.h, CUDA 5.0.
type CUresourcetype int32

const (
	CU_RESOURCE_TYPE_ARRAY           CUresourcetype = 0
	CU_RESOURCE_TYPE_MIPMAPPED_ARRAY CUresourcetype = 1
	CU_RESOURCE_TYPE_LINEAR          CUresourcetype = 2
	CU_RESOURCE_TYPE_PITCH2D         CUresourcetype = 3
)

// CUarray_format is the type of a channel. From cuda.h, CUDA 12.4; there are more.
type CUarray_format int32

const (
	CU_AD_FORMAT_UNSIGNED_INT8  CUarray_format = 0x01
	CU_AD_FORMAT_UNSIGNED_INT16 CUarray_format = 0x02
	CU_AD_FORMAT_UNSIGNED_INT32 CUarray_format = 0x03
	CU_AD_FORMAT_SIGNED_INT8    CUarray_format = 0x08
	CU_AD_FORMAT_SIGNED_INT16   CUarray_format = 0x09
	CU_AD_FORMAT_SIGNED_INT32   CUarray_format = 0x0a
	CU_AD_FORMAT_HALF           CUarray_format = 0x10
	CU_AD_FORMAT_FLOAT          CUarray_format = 0x20
)

// CUaddress_mode is what coordinates beyond the bounds mean. From cuda.h, CUDA
// 12.4.
type CUaddress_mode int32

const (
	CU_TR_ADDRESS_MODE_WRAP   CUaddress_mode = 0
	CU_TR_ADDRESS_MODE_CLAMP  CUaddress_mode = 1
	CU_TR_ADDRESS_MODE_MIRROR CUaddress_mode = 2
	CU_TR_ADDRESS_MODE_BORDER CUaddress_mode = 3
)

// CUfilter_mode is what is read between elements. From cuda.h, CUDA 12.4.
type CUfilter_mode int32

const (
	CU_TR_FILTER_MODE_POINT  CUfilter_mode = 0
	CU_TR_FILTER_MODE_LINEAR CUfilter_mode = 1
)

// Flags of CUDA_TEXTURE_DESC. From cuda.h, CUDA 12.4.
const (
	CU_TRSF_READ_AS_INTEGER        uint32 = 0x01
	CU_TRSF_NORMALIZED_COORDINATES uint32 = 0x02
	CU_TRSF_SRGB                   uint32 = 0x10
	CU_TRSF_SEAMLESS_CUBEMAP       uint32 = 0x40
)

// CUDA_RESOURCE_DESC is what a texture or a surface reads: the union has here the
// members of linear memory, whose size is Width, and of pitched memory. An array's
// handle, and a mipmapped array's, is where their address is: see OfArray. From cuda.h, CUDA 13.5.
type CUDA_RESOURCE_DESC struct {
	_            structs.HostLayout
	ResType      CUresourcetype
	_            [4]byte
	DevPtr       CUdeviceptr
	Format       CUarray_format
	NumChannels  uint32
	Width        uint64 // in elements; linear: SizeInBytes
	Height       uint64
	PitchInBytes uint64
	Rest         [88]byte
	Flags        uint32
	_            [4]byte
}

// OfArray describes a whole array.
func OfArray(a CUarray) CUDA_RESOURCE_DESC {
	return CUDA_RESOURCE_DESC{ResType: CU_RESOURCE_TYPE_ARRAY, DevPtr: CUdeviceptr(a)}
}

// OfMipmappedArray describes all levels of one.
func OfMipmappedArray(a CUmipmappedArray) CUDA_RESOURCE_DESC {
	return CUDA_RESOURCE_DESC{ResType: CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, DevPtr: CUdeviceptr(a)}
}

// Array is the array that r describes, 0 if it describes other memory.
func (r *CUDA_RESOURCE_DESC) Array() CUarray {
	if r.ResType != CU_RESOURCE_TYPE_ARRAY {
		return 0
	}
	return CUarray(r.DevPtr)
}

// MipmappedArray is the mipmapped array that r describes, 0 if it describes other
// memory.
func (r *CUDA_RESOURCE_DESC) MipmappedArray() CUmipmappedArray {
	if r.ResType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY {
		return 0
	}
	return CUmipmappedArray(r.DevPtr)
}

// CUDA_TEXTURE_DESC is how a texture reads. From cuda.h, CUDA 13.5.
type CUDA_TEXTURE_DESC struct {
	_                   structs.HostLayout
	AddressMode         [3]CUaddress_mode
	FilterMode          CUfilter_mode
	Flags               uint32
	MaxAnisotropy       uint32
	MipmapFilterMode    CUfilter_mode
	MipmapLevelBias     float32
	MinMipmapLevelClamp float32
	MaxMipmapLevelClamp float32
	BorderColor         [4]float32
	Reserved            [12]int32
}

// CUDA_RESOURCE_VIEW_DESC is a view of an array. From cuda.h, CUDA 13.5.
type CUDA_RESOURCE_VIEW_DESC struct {
	_                structs.HostLayout
	Format           int32
	_                [4]byte
	Width            uint64
	Height           uint64
	Depth            uint64
	FirstMipmapLevel uint32
	LastMipmapLevel  uint32
	FirstLayer       uint32
	LastLayer        uint32
	Reserved         [16]uint32
}
