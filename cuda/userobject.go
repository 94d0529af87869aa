// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "github.com/cudago/cudago/cuda/internal/driver"

// HoldForCapture has the graph that s is captured into hold something of the
// host's: destroy, the address of a C function, is called with data once that
// graph, its clones and executables are gone and their launches have ended. It
// is called on any thread, where no call of the driver may be made. It reports
// false if s is not capturing, and does nothing then.
//
// It calls cuStreamGetCaptureInfo, cuUserObjectCreate and
// cuGraphRetainUserObject. After an error destroy is not called.
func (s *Stream) HoldForCapture(destroy, data uintptr) (held bool, err error) {
	info, err := s.CaptureInfo()
	if err != nil || info.Status != CaptureActive {
		return false, err
	}
	leave, err := s.enter()
	if err != nil {
		return false, err
	}
	defer leave()
	api := s.ctx.drv.api
	o, r := api.CuUserObjectCreate(data, driver.CUhostFn(destroy), 1, driver.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
	if err := s.ctx.check("cuUserObjectCreate", r); err != nil {
		return false, err
	}
	// If this fails the object is left: to release it would call destroy.
	r = api.CuGraphRetainUserObject(driver.CUgraph(info.Graph), o, 1, driver.CU_GRAPH_USER_OBJECT_MOVE)
	return r == driver.CUDA_SUCCESS, s.ctx.check("cuGraphRetainUserObject", r)
}
