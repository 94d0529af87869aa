// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "github.com/cudago/cudago/cuda/internal/driver"

// A CaptureHold is what became of [Stream.HoldForCapture].
type CaptureHold int

const (
	// HoldNone means that the stream is not capturing. If it was, another thread has
	// ended that capture, and its graph may be launched.
	HoldNone CaptureHold = iota
	// HoldNoGraph means that the capture was invalidated, and becomes no graph.
	HoldNoGraph
	// HoldGraph means that the graph has it.
	HoldGraph
	// HoldInDoubt means that another thread has ended the capture during the call.
	// Whether destroy will be called, and when, is not known.
	HoldInDoubt
)

// HoldForCapture has the graph that s is captured into hold something of the
// host's: destroy, the address of a C function, is called with data once that
// graph, its clones and executables are gone and their launches have ended. It
// is called on any thread, where no call of the driver may be made.
//
// It calls cuStreamIsCapturing, cuUserObjectCreate, cuStreamGetCaptureInfo and
// cuGraphRetainUserObject. After an error, and for [HoldNone] and [HoldNoGraph],
// destroy is not called.
//
// Concurrency: the driver has no call that takes the capture for the graph, and
// its handle is the driver's until the capture ends. A capture that was not begun
// in relaxed mode is ended only by the thread that began it, and is safe there.
// Otherwise the caller must see to it that no other thread ends the capture and
// destroys its graph during the call, as for any use of the stream: the driver
// would be given a dead handle. Nothing is between the two calls in question, and
// an end of the capture that came there is reported as [HoldInDoubt].
func (s *Stream) HoldForCapture(destroy, data uintptr) (CaptureHold, error) {
	leave, err := s.enter()
	if err != nil {
		return HoldNone, err
	}
	defer leave()
	api := s.ctx.drv.api
	status, r := api.CuStreamIsCapturing(s.h)
	if err := s.ctx.check("cuStreamIsCapturing", r); err != nil || status != driver.CU_STREAM_CAPTURE_STATUS_ACTIVE {
		return notHeld(status), err
	}
	o, r := api.CuUserObjectCreate(data, driver.CUhostFn(destroy), 1, driver.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
	if err := s.ctx.check("cuUserObjectCreate", r); err != nil {
		return HoldNone, err
	}
	// Where no graph takes the object it is left: to release it would call destroy.
	info, r := api.CuStreamGetCaptureInfo(s.h, false)
	if err := s.ctx.check("cuStreamGetCaptureInfo", r); err != nil || info.Status != driver.CU_STREAM_CAPTURE_STATUS_ACTIVE {
		return notHeld(info.Status), err
	}
	r = api.CuGraphRetainUserObject(info.Graph, o, 1, driver.CU_GRAPH_USER_OBJECT_MOVE)
	if err := s.ctx.check("cuGraphRetainUserObject", r); err != nil {
		return HoldNone, err
	}
	// If the capture is still the same one, the handle was its graph's.
	now, r := api.CuStreamGetCaptureInfo(s.h, false)
	if r != driver.CUDA_SUCCESS || now.Status == driver.CU_STREAM_CAPTURE_STATUS_NONE || now.ID != info.ID {
		return HoldInDoubt, nil
	}
	return HoldGraph, nil
}

// notHeld is the CaptureHold of a capture that is not active.
func notHeld(status driver.CUstreamCaptureStatus) CaptureHold {
	if status == driver.CU_STREAM_CAPTURE_STATUS_INVALIDATED {
		return HoldNoGraph
	}
	return HoldNone
}
