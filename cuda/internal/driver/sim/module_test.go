// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// partly has a kernel that runs and one that does not.
const partly = `.version 7.0
.target sm_75
.address_size 64
.visible .entry fine()
{
	ret;
}
.visible .entry odd()
{
	.reg .b32 %r<2>;
	sub.u8x4 %r0, %r1, %r1;
	ret;
}
`

func TestModuleLog(t *testing.T) {
	odd := strings.Replace(partly, ".visible .entry fine()\n{\n\tret;\n}\n", "", 1)
	tests := []struct {
		name, image string
		want        driver.CUresult
		log         string
	}{
		{"cubin", "\x7fELF\x02\x01", driver.CUDA_ERROR_NO_BINARY_FOR_GPU, "compile to PTX"},
		{"fatbin", "\x50\xED\x55\xBA\x01", driver.CUDA_ERROR_NO_BINARY_FOR_GPU, "compile to PTX"},
		{"empty", "", driver.CUDA_ERROR_INVALID_IMAGE, "neither PTX"},
		{"bytes", "\x01\x00\x02", driver.CUDA_ERROR_INVALID_IMAGE, "neither PTX"},
		{"syntax", strings.Replace(partly, "ret;", "ret", 1), driver.CUDA_ERROR_INVALID_PTX, "line 7, column"},
		{"later device", strings.Replace(partly, "sm_75", "sm_90", 1), driver.CUDA_ERROR_NO_BINARY_FOR_GPU, "sm_90 does not run on sm_75"},
		{"later PTX", strings.Replace(partly, "7.0", "10.1", 1), driver.CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "10.1"},
		{"nothing that runs", odd, driver.CUDA_ERROR_NOT_SUPPORTED, "sub.u8x4"},
		{"something that runs", partly, driver.CUDA_SUCCESS, "sub.u8x4"},
		{"trailing NUL", touchPTX + "\x00", driver.CUDA_SUCCESS, ""},
	}
	o := newOne(t, open(t, ""))
	for _, tt := range tests {
		_, log, r := o.CuModuleLoadDataEx([]byte(tt.image))
		require.Equal(t, tt.want.String(), r.String(), "%s: %s", tt.name, log)
		require.Contains(t, log, tt.log, tt.name)
	}
}

func TestSyntaxErrorShowsTheLine(t *testing.T) {
	o := newOne(t, open(t, ""))
	_, log, r := o.CuModuleLoadDataEx([]byte(strings.Replace(touchPTX, "add.u32", "add.%u32", 1)))
	require.Equal(t, driver.CUDA_ERROR_INVALID_PTX, r)
	require.Contains(t, log, "line 13, column")
	require.Contains(t, log, "add.%u32 %r1, %r1, 1;")
}

func TestUnusableKernel(t *testing.T) {
	o := newOne(t, open(t, ""))
	m, log, r := o.CuModuleLoadDataEx([]byte(partly))
	ok(t, r)
	require.Contains(t, log, "line 11")
	_, r = o.CuModuleGetFunction(m, "odd")
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, r)
	f, r := o.CuModuleGetFunction(m, "fine")
	ok(t, r)
	again, r := o.CuModuleGetFunction(m, "fine")
	ok(t, r)
	require.Equal(t, f, again)
}
