// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

// A Recorder makes captured calls of its own in the stream of a [Capture], and
// writes down what they have added. So many small calls do not all have to come
// here; see [Capture.RecordBy].
//
// The capture stops its recorder whenever it does something itself, so that the
// two never are in the driver's graph at once, which the driver does not
// synchronize.
type Recorder interface {
	// Stop keeps the recorder from recording, waits for a call under way, and
	// returns what was recorded since the last Stop, of which the capture takes
	// over the operands. A node's Handle is 0 if it is not known. After is not used.
	Stop() []Added
	// Resume lets it record again. After the Stop at the capture's end it is not
	// called.
	Resume()
}

// RecordBy gives c a recorder, once, before anything was recorded.
//
// Operands that it records must not be memory of an open capture.
func (c *Capture) RecordBy(r Recorder) {
	c.lock()
	defer c.unlock()
	c.holdGreenContext(c.stream)
	r.Stop()
	c.recorder = r
}

// lock keeps everybody else out of the capture, and learns what its recorder has
// recorded.
func (c *Capture) lock() {
	c.mu.Lock()
	if !c.ended && c.recorder != nil {
		c.added = append(c.added, c.recorder.Stop()...)
	}
}

// unlock undoes lock.
func (c *Capture) unlock() {
	if !c.ended && c.recorder != nil {
		c.recorder.Resume()
	}
	c.mu.Unlock()
}
