// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "sync/atomic"

// uses counts the calls that are using a driver handle, so that closing never
// waits for a call that blocks: the closer or the last user, whichever comes
// last, destroys the handle. The zero value is open and unused.
type uses struct {
	state atomic.Int64 // 2 × users, + 1 once closed
}

const usesClosed int64 = 1

// begin adds a user. Once closed, it reports false and adds none.
func (u *uses) begin() bool {
	for {
		s := u.state.Load()
		if s&usesClosed != 0 {
			return false
		}
		if u.state.CompareAndSwap(s, s+2) {
			return true
		}
	}
}

// again adds a user beside another, also once closed. Without another user it
// reports false and adds none: what was closed may be destroyed.
func (u *uses) again() bool {
	for {
		s := u.state.Load()
		if s < 2 {
			return false
		}
		if u.state.CompareAndSwap(s, s+2) {
			return true
		}
	}
}

// end undoes one begin. It reports whether the caller must destroy the handle,
// as the last user of a closed one.
func (u *uses) end() (destroy bool) {
	s := u.state.Add(-2)
	if s < 0 {
		panic("BUG: a use was ended twice")
	}
	return s == usesClosed
}

// close refuses users from now on. It reports whether the caller must destroy
// the handle: if this is the first close and there are no users.
func (u *uses) close() (destroy bool) {
	for {
		s := u.state.Load()
		if s&usesClosed != 0 {
			return false
		}
		if u.state.CompareAndSwap(s, s|usesClosed) {
			return s == 0
		}
	}
}

// reopen undoes close.
func (u *uses) reopen() { u.state.And(^usesClosed) }

// inUse reports whether there are users.
func (u *uses) inUse() bool { return u.state.Load() > usesClosed }

func (u *uses) closed() bool { return u.state.Load()&usesClosed != 0 }

// refs counts the holders of an object that is released with the last of them.
// The zero value has no holder and can get none; start with init.
type refs struct {
	n atomic.Int64
}

func (r *refs) init() { r.n.Store(1) }

// retain adds a holder. It reports false, and adds none, if the last one has
// already gone.
func (r *refs) retain() bool {
	for {
		n := r.n.Load()
		if n == 0 {
			return false
		}
		if r.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release removes a holder and reports whether it was the last.
func (r *refs) release() (last bool) {
	n := r.n.Add(-1)
	if n < 0 {
		panic("BUG: released more often than retained")
	}
	return n == 0
}
