// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"math/rand/v2"
	"sync"
)

// shuffleWindow is how many blocks are shuffled at a time. They are all resident,
// so that a block that waits for an earlier one, as in a look-back scan, does not
// keep that one from running. If they wait for later ones, a further window begins.
const shuffleWindow = 32

// runShuffled runs the blocks window by window, in an order that the seed decides.
func (r *execution) runShuffled(d *Device, seed uint64) {
	r.window = shuffleWindow
	windows := (r.total + shuffleWindow - 1) / shuffleWindow
	next := func() []uint64 {
		w := r.next.Add(1) - 1
		if w >= windows {
			return nil
		}
		first := w * shuffleWindow
		blocks := make([]uint64, min(shuffleWindow, r.total-first))
		for i, o := range rand.New(rand.NewPCG(seed, w)).Perm(len(blocks)) {
			blocks[i] = first + uint64(o)
		}
		return blocks
	}
	further := func(int64) []uint64 {
		if r.running.Load() >= r.resident {
			return nil
		}
		return next()
	}
	var group sync.WaitGroup
	for range min(uint64(d.config.Workers), windows) {
		group.Go(func() {
			for !r.stop.Load() {
				blocks := next()
				if blocks == nil {
					return
				}
				t := turns{run: r, device: d}
				t.begin(blocks)
				t.take(further)
			}
		})
	}
	group.Wait()
}
