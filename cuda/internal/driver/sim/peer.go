// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/cudago/cudago/cuda/internal/driver"

func (d *simulator) CuCtxEnablePeerAccess(driver.CUcontext, uint32) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuCtxDisablePeerAccess(driver.CUcontext) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuMemPoolSetAccess(driver.CUmemoryPool, []driver.CUmemAccessDesc) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuMemPoolGetAccess(driver.CUmemoryPool, driver.CUmemLocation) (driver.CUmemAccess_flags, driver.CUresult) {
	return 0, driver.CUDA_ERROR_NOT_SUPPORTED
}
