// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"math/rand/v2"
	"sync"
)

// shuffleWindow is how many blocks are shuffled at a time. They are all resident,
// so that a block that waits for an earlier one, as in a look-back scan, does not
// keep that one from running.
const shuffleWindow = 32

// runShuffled runs the blocks window by window, in an order that the seed decides.
func (r *execution) runShuffled(d *Device, seed uint64) {
	windows := (r.total + shuffleWindow - 1) / shuffleWindow
	var group sync.WaitGroup
	for range min(uint64(d.config.Workers), windows) {
		group.Go(func() {
			for !r.stop.Load() {
				w := r.next.Add(1) - 1
				if w >= windows {
					return
				}
				first := w * shuffleWindow
				order := rand.New(rand.NewPCG(seed, w)).Perm(int(min(shuffleWindow, r.total-first)))
				blocks := make([]uint64, len(order))
				for i, o := range order {
					blocks[i] = first + uint64(o)
				}
				r.runTogether(d, blocks)
			}
		})
	}
	group.Wait()
}
