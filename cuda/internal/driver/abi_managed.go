// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

// CUmem_advise is advice on the use of managed memory. From cuda.h, CUDA 12.4.
type CUmem_advise int32

const (
	CU_MEM_ADVISE_SET_READ_MOSTLY          CUmem_advise = 1
	CU_MEM_ADVISE_UNSET_READ_MOSTLY        CUmem_advise = 2
	CU_MEM_ADVISE_SET_PREFERRED_LOCATION   CUmem_advise = 3
	CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION CUmem_advise = 4
	CU_MEM_ADVISE_SET_ACCESSED_BY          CUmem_advise = 5
	CU_MEM_ADVISE_UNSET_ACCESSED_BY        CUmem_advise = 6
)

// CUmem_range_attribute names an attribute of managed memory. From cuda.h, CUDA
// 12.4.
type CUmem_range_attribute int32

const (
	CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY                 CUmem_range_attribute = 1
	CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION          CUmem_range_attribute = 2
	CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY                 CUmem_range_attribute = 3
	CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION      CUmem_range_attribute = 4
	CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE     CUmem_range_attribute = 5
	CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID       CUmem_range_attribute = 6
	CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE CUmem_range_attribute = 7
	CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID   CUmem_range_attribute = 8
)

// Values that stand for no device in range attributes. From cuda.h, CUDA 12.4.
const (
	CU_DEVICE_CPU     int32 = -1
	CU_DEVICE_INVALID int32 = -2
)
