// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/cudago/cudago/cuda/internal/driver"

// hostWork calls a function of the host.
type hostWork struct {
	params driver.CUDA_HOST_NODE_PARAMS
}

func (w *hostWork) run(x *execution) *failure {
	// The function may tell other host code how far the stream has got.
	if x.mark != nil {
		x.sim.waited(point{x.mark.at.tl, x.mark.at.seq - 1})
	}
	x.sim.runHost(w.params.Fn, w.params.UserData)
	return nil
}

// newHostWork checks the parameters of a call.
func (d *simulator) newHostWork(p *driver.CUDA_HOST_NODE_PARAMS) (*hostWork, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if p == nil || p.Fn == 0 {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	if d.callHost == nil {
		return nil, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	return &hostWork{*p}, driver.CUDA_SUCCESS
}

func (d *simulator) CuLaunchHostFunc(h driver.CUstream, fn driver.CUhostFn, userData uintptr) driver.CUresult {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	w, r := d.newHostWork(&driver.CUDA_HOST_NODE_PARAMS{Fn: fn, UserData: userData})
	if r != driver.CUDA_SUCCESS {
		return r
	}
	d.behindLaunches()
	return d.submit(s, w, driver.CU_GRAPH_NODE_TYPE_HOST)
}
