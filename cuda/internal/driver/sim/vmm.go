// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/cudago/cudago/cuda/internal/driver"

func (d *simulator) CuMemGetAllocationGranularity(*driver.CUmemAllocationProp, driver.CUmemAllocationGranularity_flags) (uint64, driver.CUresult) {
	return 0, driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuMemAddressReserve(size, alignment uint64, addr driver.CUdeviceptr, flags uint64) (driver.CUdeviceptr, driver.CUresult) {
	return 0, driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuMemAddressFree(driver.CUdeviceptr, uint64) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuMemCreate(uint64, *driver.CUmemAllocationProp, uint64) (driver.CUmemGenericAllocationHandle, driver.CUresult) {
	return 0, driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuMemRelease(driver.CUmemGenericAllocationHandle) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuMemMap(p driver.CUdeviceptr, size, offset uint64, h driver.CUmemGenericAllocationHandle, flags uint64) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuMemUnmap(driver.CUdeviceptr, uint64) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuMemSetAccess(driver.CUdeviceptr, uint64, []driver.CUmemAccessDesc) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}
