// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import "structs"

// CUmemAllocationHandleType is a kind of handle by which memory is shared with
// other processes. From cuda.h, CUDA 12.4.
type CUmemAllocationHandleType int32

const (
	CU_MEM_HANDLE_TYPE_NONE                  CUmemAllocationHandleType = 0
	CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR CUmemAllocationHandleType = 1
)

// CUmemPoolPtrExportData names an allocation of a pool to other processes. It is
// no handle: nothing has to release it. From cuda.h, CUDA 12.4: 64 bytes.
type CUmemPoolPtrExportData struct {
	_        structs.HostLayout
	Reserved [64]byte
}

// CUipcEventHandle names an event to other processes. From cuda.h, CUDA 12.4: 64
// bytes.
type CUipcEventHandle struct {
	_        structs.HostLayout
	Reserved [64]byte
}
