// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// shuffler runs queued work in a random order that respects streams and events:
// with a seed, instead of a goroutine for each stream. Work stays queued until
// a caller waits, or for a moment, so that there is much to choose from. For
// one seed a program runs in the same order if it queues the same work and
// waits for it in time.
type shuffler struct {
	mu      sync.Mutex
	random  *rand.Rand // guarded by mu
	streams []*stream  // guarded by mu; those with a queue, in the order of their ids
	active  bool       // guarded by mu; background runs
}

// patience is how long queued work stays queued if no caller waits for it.
const patience = time.Millisecond

func newShuffler(seed uint64) *shuffler {
	if seed == 0 {
		return nil
	}
	return &shuffler{random: rand.New(rand.NewPCG(seed, 0))}
}

// add says that a stream has work.
//
// Preconditions: s.mu must be locked.
func (f *shuffler) add(s *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, found := slices.BinarySearchFunc(f.streams, s, func(a, b *stream) int { return int(int64(a.id) - int64(b.id)) })
	if !found {
		f.streams = slices.Insert(f.streams, i, s)
	}
	if !f.active {
		f.active = true
		s.ctx.sim.workers.Add(1)
		go f.background(&s.ctx.sim.workers)
	}
}

// background runs work that no caller waits for.
func (f *shuffler) background(workers *sync.WaitGroup) {
	defer workers.Done()
	for {
		time.Sleep(patience)
		for f.step() {
		}
		f.mu.Lock()
		if len(f.streams) == 0 {
			f.active = false
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
	}
}

// standIn runs work for a goroutine that cannot until done is closed.
func (f *shuffler) standIn(workers *sync.WaitGroup, done <-chan struct{}) {
	defer workers.Done()
	for {
		select {
		case <-done:
			return
		default:
		}
		if !f.step() {
			time.Sleep(patience)
		}
	}
}

// runUntil runs work until a point is reached. It waits while another goroutine
// runs work that it needs.
func (f *shuffler) runUntil(p point) {
	for !p.reached() {
		if f.step() {
			continue
		}
		reached := p.tl.await(p.seq)
		if reached == nil {
			return
		}
		select {
		case <-reached:
		case <-time.After(patience):
		}
	}
}

// step runs one item of a stream that is ready. It reports false if there is
// none.
func (f *shuffler) step() bool {
	f.mu.Lock()
	streams := slices.Clone(f.streams)
	order := f.random.Perm(len(streams))
	f.mu.Unlock()
	for _, i := range order {
		s := streams[i]
		if !s.claimReady() {
			continue
		}
		seq := s.done.Load() + 1
		if it, ok := s.next(true); ok {
			s.x.mark = it.mark
			s.x.do(it.work)
			s.advance(seq)
		}
		s.next(false) // gives the claim up
		f.forget(s)
		return true
	}
	return false
}

// forget drops a stream that has no work left.
func (f *shuffler) forget(s *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams = slices.DeleteFunc(f.streams, func(o *stream) bool { return o == s })
}

// claimReady claims the queue if its next item can run now.
func (s *stream) claimReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running || s.claimed || s.head == len(s.queue) || !allReached(s.queue[s.head].after) {
		return false
	}
	s.claimed = true
	return true
}

// blockSeed is the seed for the order of a launch's blocks; 0 without shuffling.
func (d *simulator) blockSeed() uint64 {
	if d.shuffle == nil {
		return 0
	}
	d.shuffle.mu.Lock()
	defer d.shuffle.mu.Unlock()
	return d.shuffle.random.Uint64() | 1
}
