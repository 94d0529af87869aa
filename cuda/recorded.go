// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"slices"
	"sync"
)

// openCaptures are the open captures that this package began, by the driver's
// number.
type openCaptures struct {
	mu  sync.Mutex
	ids map[uint64]int // guarded by mu; captures into one graph can have the same number
}

func (o *openCaptures) begin(id uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids == nil {
		o.ids = map[uint64]int{}
	}
	o.ids[id]++
}

func (o *openCaptures) end(id uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids[id]--; o.ids[id] <= 0 {
		delete(o.ids, id)
	}
}

func (o *openCaptures) has(id uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ids[id] > 0
}

// recordings are the captures that an event was recorded in. NVIDIA's driver
// (580.159) crashes if one thread destroys such an event while another is
// inside cuStreamBeginCapture or cuStreamEndCapture of that capture. After that
// capture it may be destroyed at any time, even during other captures of the
// stream.
type recordings struct {
	mu      sync.Mutex
	ids     []uint64 // guarded by mu: of captures that may still be open
	foreign bool     // guarded by mu: in a capture whose end is not noticed here
}

func (r *recordings) add(id uint64, open *openCaptures) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prune(open)
	if open.has(id) {
		r.ids = append(r.ids, id)
	} else {
		r.foreign = true
	}
}

// prune removes captures that have ended.
//
// Preconditions: r.mu is held.
func (r *recordings) prune(open *openCaptures) {
	r.ids = slices.DeleteFunc(r.ids, func(id uint64) bool { return !open.has(id) })
}

// underWay reports whether a capture of this package that the event was
// recorded in is still open.
func (r *recordings) underWay(open *openCaptures) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prune(open)
	return len(r.ids) > 0
}

func (r *recordings) isForeign() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.foreign
}

// noteOfRecord returns a function that notes that e was recorded in s, or nil if
// s is not capturing. A capture without a number, or with one that is not open here,
// belongs to another library.
//
// Preconditions: the context is current, the handle is valid, and drv.capture is
// shared until the note is made: no capture of ours begins or ends meanwhile.
func (s *Stream) noteOfRecord(e *Event) (note func(), err error) {
	const op = "cuStreamGetCaptureInfo"
	if capturing, err := s.capturing(); err != nil || !capturing {
		return nil, err
	}
	info, r := s.ctx.drv.api.CuStreamGetCaptureInfo(s.h, false)
	if isCaptureRefusal(r) { // the legacy default stream, where the record will fail too
		return func() {}, nil
	}
	return func() { e.recorded.add(info.ID, &s.ctx.drv.open) }, s.ctx.check(op, r)
}
