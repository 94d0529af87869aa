// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/cudago/cudago/cuda/internal/driver"

func (d *simulator) CuMemAdvise(driver.CUdeviceptr, uint64, driver.CUmem_advise, driver.CUmemLocation) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuMemPrefetchAsync(driver.CUdeviceptr, uint64, driver.CUmemLocation, uint32, driver.CUstream) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuMemRangeGetAttribute([]int32, driver.CUmem_range_attribute, driver.CUdeviceptr, uint64) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}
