// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// This file gives an allocation the memory of frees that have not run yet, as
// CUDA does: of those before it in its own stream, and of another stream's if it
// then waits for them. The call itself waits for nothing. So it was on an H200,
// driver 580.159, behind a host function that did not return: with a pool at its
// limit, and with a full device, where a refusal took 40 ms.

// withReuse tries to allocate, again and again while the pool can have the bytes
// of a free back before it has run.
func (d *simulator) withReuse(p *pool, s *stream, try func() driver.CUresult) driver.CUresult {
	r := try()
	if r == driver.CUDA_ERROR_OUT_OF_MEMORY && d.config.hostile {
		s.end().wait() // CUDA does not promise that it never waits
	}
	for more := true; more && r == driver.CUDA_ERROR_OUT_OF_MEMORY; {
		more = d.reuseFree(p, s)
		r = try() // even if there is no more: a free may have run just after the attempt
	}
	return r
}

// reuseFree counts the memory of one queued free as free for what s does next. It
// reports false if there is none.
func (d *simulator) reuseFree(p *pool, s *stream) bool {
	if _, found := s.takeFree(p); found {
		return true
	}
	if !p.mayDepend() {
		return false
	}
	for _, o := range s.ctx.others(s) {
		if at, found := o.takeFree(p); found {
			s.enqueue(joinWork{}, at)
			return true
		}
	}
	return false
}

// takeFree counts the memory of the first queued free that it finds as free, and
// returns where the free is.
func (s *stream) takeFree(p *pool) (at point, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.queue[s.head:]
	seq := s.last.Load() - uint64(len(left))
	if s.current.takeFree(p) {
		return point{&s.timeline, seq}, true
	}
	for i := range left {
		if left[i].takeFree(p) {
			return point{&s.timeline, seq + 1 + uint64(i)}, true
		}
	}
	return point{}, false
}

func (it *item) takeFree(p *pool) bool {
	w, ok := it.work.(*freeWork)
	if !ok || w.a.pool != p || w.a.isTheirs() || !p.returned(w.a) {
		return false
	}
	if w.a.onDevice() {
		w.a.ctx.dev.memory.Discount(w.a.base)
	}
	return true
}

// others are the streams of the context but s, in the order of their making.
func (c *context) others(s *stream) []*stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*stream
	for o := range c.streams {
		if o != s {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *stream) int { return int(int64(a.id) - int64(b.id)) })
	return all
}

// mayDepend reports whether an allocation may wait for a free in another stream.
func (p *pool) mayDepend() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reuse[driver.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES] != 0
}
