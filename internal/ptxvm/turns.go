// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import "fmt"

// CUDA promises no order of blocks, nor that two run at once unless the grid is
// cooperative. But a GPU begins as many blocks as it holds, and there are programs
// whose blocks wait for each other within that number. So a worker whose blocks only
// wait begins further ones, and runs all of them in turns, until the device is full.

// patience is how many turns the blocks of a worker may take, while no block of the
// launch begins and none of theirs ends, before further ones begin. It counts turns
// and not time, so that a single worker always does the same. A turn is short in a
// loop that may wait, see quantum, and takes milliseconds in one that works.
const patience = 64

// turns are blocks that one worker runs in turns.
type turns struct {
	run    *execution
	device *Device
	blocks []*cta // those that have not ended
	own    *cta   // one of them whose CTA is the worker's, or nil
}

// waitFor runs a block of a worker to its end, with further ones if it waits.
func (r *execution) waitFor(d *Device, c *cta) {
	t := turns{run: r, device: d, blocks: []*cta{c}, own: c}
	t.take(func(n int64) []uint64 {
		d.priorities.giveWay(r)
		return r.further(n)
	})
}

// further hands out up to n more blocks, as many as the device still holds.
func (r *execution) further(n int64) []uint64 {
	n = min(n, r.resident-r.running.Load()) // several workers may add a few blocks too many
	var blocks []uint64
	for range n {
		i := r.next.Add(1) - 1
		if i >= r.total {
			break
		}
		blocks = append(blocks, i)
	}
	return blocks
}

// begin begins blocks.
func (t *turns) begin(numbers []uint64) {
	for _, i := range numbers {
		c := t.device.takeCTA(t.run.kernel)
		t.run.running.Add(1)
		t.run.protect(c, func() {
			c.bind(t.run)
			c.start(i)
		})
		t.blocks = append(t.blocks, c)
	}
}

// end is called when a block has ended.
func (t *turns) end(c *cta) {
	if c == t.own {
		return
	}
	t.run.running.Add(-1)
	t.run.collect(c)
	t.device.putCTA(c)
}

// take runs the blocks in turns until all have ended, or the launch has failed. If
// they only wait, further, unless it is nil, hands out that many more.
func (t *turns) take(further func(n int64) []uint64) {
	r := t.run
	idle, from := 0, r.next.Load()
	for len(t.blocks) > 0 && !r.stop.Load() {
		before := len(t.blocks)
		t.turn()
		if next := r.next.Load(); next != from || len(t.blocks) < before {
			idle, from = 0, next
			continue
		}
		if idle++; idle < patience || further == nil {
			continue
		}
		idle = 0
		if r.begun() < r.total {
			more := further(int64(before))
			r.full.Store(len(more) == 0)
			t.begin(more)
		}
	}
	for _, c := range t.blocks {
		t.end(c)
	}
}

// turn gives each block a turn.
func (t *turns) turn() {
	left := t.blocks[:0]
	for _, c := range t.blocks {
		finished := true
		t.run.protect(c, func() { finished = c.runTurn() })
		if finished {
			t.end(c)
		} else {
			left = append(left, c)
		}
	}
	t.blocks = left
}

// begun is how many blocks have begun, or are about to.
func (r *execution) begun() uint64 { return min(r.next.Load()*r.window, r.total) }

// notBegun says, of a launch whose blocks wait, how many there was no room for.
func (r *execution) notBegun() string {
	n := r.total - r.begun()
	if n == 0 || !r.full.Load() {
		return ""
	}
	return fmt.Sprintf("%d of %d blocks have not begun: the device holds %d at once", n, r.total, r.resident)
}
