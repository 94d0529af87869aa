// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

import (
	"sync/atomic"
	"time"

	"github.com/cudago/cudago/cuda"
)

// drainPause lies between two tries of releases that wait for the device. A new item
// is stepped at once, so tries without a pause would take a whole core; and so would
// many releases that each have to ask the driver, if the pause did not grow with
// them. Where somebody waits for the releases it does not.
const (
	drainPause    = time.Millisecond
	drainPauseMax = 20 * time.Millisecond
	drainShare    = 10 // the pause is as many times as long as the try
)

// A drain makes the reaper try the postponed releases.
type drain struct {
	driver *cuda.Driver
	asked  time.Time
	pause  time.Duration
}

// draining says that the reaper tries postponed releases, and what asks for
// another try now is most likely one of them.
var draining atomic.Bool

// drainTook is how long the latest try took, in nanoseconds.
var drainTook atomic.Int64

// drainAsked says that a try is ahead: one serves all who ask meanwhile, and each
// release asks that has to wait.
var drainAsked atomic.Bool

func askDrain(d *cuda.Driver) {
	if !drainAsked.Swap(true) {
		Reaper.Add(newDrain(d))
	}
}

func newDrain(d *cuda.Driver) *drain {
	it := &drain{driver: d, asked: time.Now()}
	if draining.Load() {
		it.pause = min(max(drainPause, drainShare*time.Duration(drainTook.Load())), drainPauseMax)
	}
	return it
}

// Step implements [finalize.Item].
func (it *drain) Step() (done bool, err error) {
	pause := it.pause
	if Reaper.Hurried() {
		pause = min(pause, drainPause)
	}
	if time.Since(it.asked) < pause {
		return false, nil
	}
	done = Callbacks.Alone(func() {
		drainAsked.Store(false) // before the try: what comes during it may be too late for it
		draining.Store(true)
		defer draining.Store(false)
		began := time.Now()
		it.driver.Drain()
		drainTook.Store(int64(time.Since(began)))
	})
	return done, nil
}
