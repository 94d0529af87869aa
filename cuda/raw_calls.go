// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "github.com/cudago/cudago/cuda/internal/driver"

// The functions below are for callers that make some driver calls themselves
// and leave the rest to this package, as the border to Python does.

// Failure returns the error for a driver call that the caller has made in c,
// with what the driver knows of the fault if the result is sticky. It is nil
// for [Success].
func (c *Context) Failure(op string, result int32, detail string) error {
	if result == 0 {
		return nil
	}
	return c.fail(op, driver.CUresult(result), detail)
}

// HostPointer returns the host's address of device memory, or 0 if the host
// cannot reach it. It calls cuPointerGetAttribute.
func (c *Context) HostPointer(ptr uint64) (uint64, error) {
	leave, err := c.Enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	v, r := c.drv.api.CuPointerGetAttribute(driver.CU_POINTER_ATTRIBUTE_HOST_POINTER, driver.CUdeviceptr(ptr))
	if r == driver.CUDA_SUCCESS || r == driver.CUDA_ERROR_INVALID_VALUE {
		return v, nil
	}
	return 0, explained(c.check("cuPointerGetAttribute", r), "the host's address of %#x", ptr)
}
