// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func TestBaseDoesNothing(t *testing.T) {
	var b driver.Base
	p, r := b.CuMemAlloc(16)
	require.Zero(t, p)
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, r)
	var calls []string
	b.Answer = func(call string) driver.CUresult {
		calls = append(calls, call)
		return driver.CUDA_ERROR_NOT_READY
	}
	require.Equal(t, driver.CUDA_ERROR_NOT_READY, b.CuStreamQuery(0))
	_, _, r = b.CuMemGetInfo()
	require.Equal(t, driver.CUDA_ERROR_NOT_READY, r)
	require.Equal(t, []string{"cuStreamQuery", "cuMemGetInfo"}, calls)
}
