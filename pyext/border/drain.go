// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

import (
	"sync/atomic"
	"time"

	"github.com/cudago/cudago/cuda"
)

// drainPause lies between two tries of a release that waits for the device. A
// new item is stepped at once, so tries without a pause would take a whole core.
const drainPause = time.Millisecond

// A drain makes the reaper try the postponed releases.
type drain struct {
	driver *cuda.Driver
	notYet time.Time
}

// draining says that the reaper tries postponed releases, and what asks for
// another try now is most likely one of them.
var draining atomic.Bool

func newDrain(d *cuda.Driver) *drain {
	it := &drain{driver: d}
	if draining.Load() {
		it.notYet = time.Now().Add(drainPause)
	}
	return it
}

// Step implements [finalize.Item].
func (it *drain) Step() (done bool, err error) {
	if time.Now().Before(it.notYet) {
		return false, nil
	}
	done = Callbacks.Alone(func() {
		draining.Store(true)
		defer draining.Store(false)
		it.driver.Drain()
	})
	return done, nil
}
