// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"sync/atomic"
	"time"
)

// The pause between two rounds of a sweep. Without one they would take a whole core,
// since a new item of the reaper is stepped at once; and so would rounds through very
// much, if the pause did not grow with them. Where somebody waits for it, it does not.
const (
	sweepPause    = time.Millisecond
	sweepPauseMax = 20 * time.Millisecond
	sweepShare    = 10 // the pause is as many times as long as the round
)

// A Sweep tries again what many have postponed: a round goes through all of it, and
// whatever has to be postponed again asks for the next round. Safe for concurrent use.
type Sweep struct {
	reaper *Reaper
	turn   func(round func()) bool
	round  func()

	ahead    atomic.Bool  // a round is, and serves all who ask meanwhile
	underWay atomic.Bool  // a round is: who asks now most likely is what it tried
	took     atomic.Int64 // the latest round, in nanoseconds
}

// NewSweep returns a sweep whose rounds are run on r by turn, which returns false,
// without running it, if it must not run now.
func NewSweep(r *Reaper, turn func(round func()) bool, round func()) *Sweep {
	return &Sweep{reaper: r, turn: turn, round: round}
}

// Ask has a round begin after this call: soon, or after a pause if it is called by
// a round.
func (s *Sweep) Ask() {
	if s.ahead.Swap(true) {
		return
	}
	it := &sweeping{sweep: s, asked: time.Now()}
	if s.underWay.Load() {
		it.pause = min(max(sweepPause, sweepShare*time.Duration(s.took.Load())), sweepPauseMax)
	}
	s.reaper.Add(it)
}

// sweeping is a round that is ahead.
type sweeping struct {
	sweep *Sweep
	asked time.Time
	pause time.Duration
}

// Step implements [Item].
func (it *sweeping) Step() (done bool, err error) {
	s, pause := it.sweep, it.pause
	if s.reaper.Hurried() {
		pause = min(pause, sweepPause)
	}
	if time.Since(it.asked) < pause {
		return false, nil
	}
	return s.turn(s.run), nil
}

func (s *Sweep) run() {
	s.ahead.Store(false) // before the round: what is postponed during it may be too late for it
	s.underWay.Store(true)
	defer s.underWay.Store(false)
	began := time.Now()
	s.round()
	s.took.Store(int64(time.Since(began)))
}
