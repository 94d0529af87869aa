// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// uncaptured makes a call of a release in s, unless s is capturing: no capture of
// this package begins between the look and the call, in which the release would
// become a node, or which it would invalidate. The call must not wait: whoever
// begins a capture would too. Its result is that of the call, or
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the release has to wait for the end of a
// capture, or of a reset; or notYet. gone is the result if s has no work any more,
// because of a reset or because its device has failed for good.
func (s *Stream) uncaptured(gone driver.CUresult, call func(driver.API) driver.CUresult) driver.CUresult {
	leave, err := s.ctx.Enter()
	switch {
	case errors.Is(err, ErrLost):
		if s.ctx.state.Load() == contextLost {
			return gone
		}
		return driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED // the reset may fail
	case mayPass(err):
		return notYet
	case err != nil:
		return gone // as after a wait that fails for good
	}
	defer leave()
	if !s.ctx.drv.capture.TryRLock() {
		return notYet
	}
	defer s.ctx.drv.capture.RUnlock()
	capturing, err := s.capturing()
	if capturing {
		return driver.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
	}
	if mayPass(err) { // a permanent failure is reported by the release
		return notYet
	}
	return call(s.ctx.drv.api)
}

// unused is over of the stream on that an allocation is freed behind, which may be
// nil, unless the owner says that nothing uses it. Where nobody tries postponed
// releases soon, it waits.
func (a *allocation) unused(on *Stream) driver.CUresult {
	if on == nil || a.idle.Load() {
		return driver.CUDA_SUCCESS
	}
	const least, most = 20 * time.Microsecond, time.Millisecond
	for nap := least; ; nap = min(2*nap, most) {
		r := on.over()
		if r != driver.CUDA_ERROR_NOT_READY {
			return r
		}
		if on.ctx.drv.onCaptureEnd.Load() != nil {
			return notYet
		}
		time.Sleep(nap)
	}
}

// over is CUDA_SUCCESS if no work in s is left that a release has to await,
// CUDA_ERROR_NOT_READY if some is, and otherwise what the release returns. A wait
// would invalidate a capture that begins just before it.
func (s *Stream) over() driver.CUresult {
	return s.uncaptured(driver.CUDA_SUCCESS, func(api driver.API) driver.CUresult {
		r := api.CuStreamQuery(s.h)
		switch {
		case isCaptureRefusal(r), r == driver.CUDA_ERROR_NOT_READY:
			return r
		case hasWaited(r):
			return driver.CUDA_SUCCESS
		}
		return notYet
	})
}
