// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/cudago/cudago/cuda/internal/driver"

func (d *simulator) CuMemHostRegister(uintptr, uint64, uint32) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}

func (d *simulator) CuMemHostUnregister(uintptr) driver.CUresult {
	return driver.CUDA_ERROR_NOT_SUPPORTED
}
