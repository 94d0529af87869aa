// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

var streamCount atomic.Uint64

// stream is a queue of work that runs in order.
type stream struct {
	timeline
	ctx      *context
	handle   driver.CUstream
	id       uint64
	flags    uint32
	priority int32
	isLegacy bool
	green    *greenContext // that it belongs to; nil for most

	// last is the number of the last item that was queued.
	last atomic.Uint64 // written with mu held

	mu      sync.Mutex
	queue   []item // guarded by mu
	head    int    // guarded by mu; index of the next item
	current item   // guarded by mu; the item before that, while it waits or runs
	running bool   // guarded by mu; there is work, and a goroutine for it
	claimed bool   // guarded by mu; a goroutine is running the queue
	kernel  uint64 // guarded by mu; the latest kernel in the queue
	ended   uint64 // guarded by mu; see follow
	retired bool   // guarded by mu; destroyed by its owner

	x execution // of whoever claimed the queue

	// capture is the capture that the stream is part of.
	capture atomic.Pointer[capture] // written with simulator.graphMu held
	// front is what the next captured operation depends on.
	front   []*node                          // guarded by simulator.graphMu
	early   map[*node]driver.CUgraphEdgeData // guarded by simulator.graphMu; of those in front whose completion it does not wait for
	own     *node                            // guarded by simulator.graphMu; the last one that s itself captured
	traffic traffic
	stuck   atomic.Int32 // threads that wait for room in the queue
}

// item is one entry of a queue. It runs when the one before it is done and the
// points in after are reached.
type item struct {
	work  work
	after []point
	mark  *mark
}

func newStream(c *context, flags uint32, priority int32) *stream {
	priority = min(max(priority, greatestPriority), leastPriority)
	s := &stream{
		ctx: c, flags: flags, id: streamCount.Add(1), priority: priority,
		x: execution{sim: c.sim, ctx: c, priority: leastPriority - priority},
	}
	s.timeline.stream = s
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[s] = struct{}{}
	return s
}

// blocking reports whether the stream takes part in the legacy default
// stream's rules.
func (s *stream) blocking() bool { return s.flags&driver.CU_STREAM_NON_BLOCKING == 0 }

// orphaned reports whether the green context of the stream was destroyed before
// the stream.
func (s *stream) orphaned() bool { return s.green != nil && s.green.destroyed.Load() }

// end is the point at which all work queued now is done.
func (s *stream) end() point { return point{&s.timeline, s.last.Load()} }

// enqueue appends work that also waits for the points in after, and returns
// the point of its completion.
//
// What it has to wait for is read before it gets its number: so whatever an
// item waits for was queued before it, and streams cannot wait in a circle.
func (s *stream) enqueue(w work, after ...point) point {
	after = s.implicit(after)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.push(w, after)
}

// enqueueQuick is enqueue for work that takes no time: an idle stream does it
// at once, without waking a goroutine.
func (s *stream) enqueueQuick(w work, after ...point) point {
	after = s.implicit(after)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running || !allReached(after) {
		return s.push(w, after)
	}
	p := point{&s.timeline, s.last.Add(1)}
	s.x.mark = s.ctx.sim.check.mark(w, p, after, s.follow(w, p.seq))
	s.x.do(w)
	s.advance(p.seq)
	return p
}

// push appends to the queue.
//
// Preconditions: s.mu must be locked.
func (s *stream) push(w work, after []point) point {
	p := point{&s.timeline, s.last.Add(1)}
	s.queue = append(s.queue, item{w, after, s.ctx.sim.check.mark(w, p, after, s.follow(w, p.seq))})
	if !s.running {
		s.running = true
		s.start()
	}
	return p
}

// follow notes the number of a new item, and returns the last number before which
// all must have ended when the item starts: a programmatic launch may overlap
// with the kernel right in front of it, and with what that overlaps with.
//
// Preconditions: s.mu must be locked.
func (s *stream) follow(w work, seq uint64) uint64 {
	k, isKernel := w.(*kernelWork)
	if !isKernel || !k.programmatic || s.kernel != seq-1 {
		s.ended = seq - 1
	}
	if isKernel {
		s.kernel = seq
	}
	return s.ended
}

// start makes a goroutine for the queue.
//
// Preconditions: s.mu must be locked.
func (s *stream) start() {
	if f := s.ctx.sim.shuffle; f != nil {
		f.add(s)
		return
	}
	s.ctx.sim.workers.Add(1)
	go s.drain()
}

// implicit adds what the default stream's rules require: the legacy stream
// waits for all blocking streams of its context, and they for it.
func (s *stream) implicit(after []point) []point {
	all := s.ctx.sim.check.ordering()
	if s.isLegacy {
		s.ctx.mu.Lock()
		defer s.ctx.mu.Unlock()
		for o := range s.ctx.streams {
			if p := o.end(); o != s && o.blocking() && (all || !p.reached()) {
				after = append(after, p)
			}
		}
		return after
	}
	if p := s.ctx.legacy.end(); s.blocking() && (all || !p.reached()) {
		after = append(after, p)
	}
	return after
}

// drain runs the queue until it is empty, unless another goroutine does.
func (s *stream) drain() {
	defer s.ctx.sim.workers.Done()
	s.help(math.MaxUint64)
}

// help runs the queue up to item number last, unless another goroutine does. A
// caller that will wait for that item anyway avoids a switch of threads this
// way, which costs more than a small kernel.
func (s *stream) help(last uint64) {
	if f := s.ctx.sim.shuffle; f != nil {
		f.runUntil(point{&s.timeline, last})
		return
	}
	s.mu.Lock()
	mine := s.running && !s.claimed
	if mine {
		s.claimed = true
	}
	s.mu.Unlock()
	if !mine {
		return
	}
	for seq := s.done.Load() + 1; ; seq++ {
		it, ok := s.next(seq <= last)
		if !ok {
			return
		}
		for _, p := range it.after {
			p.wait()
		}
		s.x.mark = it.mark
		s.x.do(it.work)
		s.advance(seq)
	}
}

// next takes an item off the queue. Without more, or if the queue is empty, it
// releases the claim.
func (s *stream) next(more bool) (item, bool) {
	s.mu.Lock()
	left := s.head < len(s.queue)
	if left && more {
		it := s.queue[s.head]
		s.current, s.queue[s.head] = it, item{}
		s.head++
		s.mu.Unlock()
		return it, true
	}
	s.claimed, s.current = false, item{}
	if left {
		s.start()
	} else {
		s.queue, s.head, s.running = s.queue[:0], 0, false
	}
	retired := s.retired && !left
	s.mu.Unlock()
	if retired {
		s.ctx.forget(s)
	}
	return item{}, false
}

// do runs work unless the context has failed.
func (x *execution) do(w work) {
	if x.ctx.result() == driver.CUDA_SUCCESS {
		if f := w.run(x); f != nil {
			x.ctx.fail(f)
		}
	} else if w, ok := w.(dropper); ok {
		w.drop()
	}
}

// retire is called when the owner destroys the stream: queued work still
// completes.
func (s *stream) retire() {
	s.mu.Lock()
	s.retired = true
	idle := !s.running
	s.mu.Unlock()
	if idle {
		s.ctx.forget(s)
	}
}

func (c *context) forget(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s)
}

// stream finds a stream by its handle. The default streams are those of the
// current context.
func (d *simulator) stream(h driver.CUstream) (*stream, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if h > driver.CU_STREAM_PER_THREAD {
		s := d.streams.get(h)
		if s == nil {
			return nil, d.staleStream(h)
		}
		if s.orphaned() {
			return nil, driver.CUDA_ERROR_CONTEXT_IS_DESTROYED
		}
		return s, s.ctx.result()
	}
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if h == driver.CU_STREAM_PER_THREAD {
		tid, _, _ := d.threadState()
		return c.threadStream(tid), driver.CUDA_SUCCESS
	}
	return c.legacy, driver.CUDA_SUCCESS
}

func (d *simulator) CuStreamCreateWithPriority(flags uint32, priority int32) (driver.CUstream, driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if flags&^driver.CU_STREAM_NON_BLOCKING != 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	d.behindLaunches()
	s := newStream(c, flags, priority)
	s.handle = d.streams.add(s)
	return s.handle, driver.CUDA_SUCCESS
}

// CuStreamDestroy lets queued work complete. A capture that the stream is part
// of is lost.
func (d *simulator) CuStreamDestroy(h driver.CUstream) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	if h <= driver.CU_STREAM_PER_THREAD {
		return driver.CUDA_ERROR_INVALID_HANDLE
	}
	if s := d.streams.get(h); s != nil && s.orphaned() {
		return driver.CUDA_ERROR_CONTEXT_IS_DESTROYED
	}
	s := d.streams.take(h)
	if s == nil {
		return driver.CUDA_ERROR_INVALID_HANDLE
	}
	d.behindLaunches()
	if s.capture.Load() != nil {
		d.abandonStream(s)
	}
	s.retire()
	return s.ctx.result()
}

func (d *simulator) CuStreamSynchronize(h driver.CUstream) driver.CUresult {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.hostWaits(s); r != driver.CUDA_SUCCESS {
		return r
	}
	p := s.end()
	if s.isLegacy {
		for _, before := range s.implicit(nil) {
			before.wait()
			s.ctx.sim.waited(before)
		}
	}
	p.wait()
	s.ctx.sim.waited(p)
	s.ctx.dev.trimPools()
	return s.ctx.outcome()
}

func (d *simulator) CuStreamQuery(h driver.CUstream) driver.CUresult {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.hostWaits(s); r != driver.CUDA_SUCCESS {
		return r
	}
	s.behindOwn()
	p := s.end()
	if !p.reached() || s.isLegacy && !allReached(s.implicit(nil)) {
		return driver.CUDA_ERROR_NOT_READY
	}
	s.ctx.sim.waited(p)
	return s.ctx.outcome()
}

func (d *simulator) CuStreamGetPriority(h driver.CUstream) (int32, driver.CUresult) {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return s.priority, r
}

func (d *simulator) CuStreamGetFlags(h driver.CUstream) (uint32, driver.CUresult) {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return s.flags, r
}

func (d *simulator) CuStreamGetId(h driver.CUstream) (uint64, driver.CUresult) {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return s.id, r
}

func (d *simulator) CuStreamGetCtx(h driver.CUstream) (driver.CUcontext, driver.CUresult) {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	return s.ctx.handle, r
}
