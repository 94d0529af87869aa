// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/memfd"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// resultOf is the result of a call whose file in memory could not be made, opened or
// mapped. Of a file that is none of ours it is the result that the caller gives.
func resultOf(err error, foreign driver.CUresult) driver.CUresult {
	switch {
	case err == nil:
		return driver.CUDA_SUCCESS
	case errors.Is(err, memfd.ErrNotSealed), errors.Is(err, memfd.ErrTooSmall), errors.Is(err, memory.ErrTooLarge),
		errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EBADF):
		return foreign
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return driver.CUDA_ERROR_OPERATING_SYSTEM
	case errors.Is(err, syscall.ENOSYS):
		return driver.CUDA_ERROR_NOT_SUPPORTED
	case errors.Is(err, memory.ErrOutOfMemory), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.ENOSPC):
		return driver.CUDA_ERROR_OUT_OF_MEMORY
	}
	return driver.CUDA_ERROR_OPERATING_SYSTEM
}
