// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import "github.com/cudago/cudago/cuda"

// A greenHold keeps a green context.
type greenHold func()

// Release implements [Retainer].
func (h greenHold) Release() { h() }

// holdGreenContext makes the graph keep the green context of s, if it has one:
// what is captured in s runs on that context's SMs, also when s is gone.
//
// Preconditions: c.mu is held, and s in use.
func (c *Capture) holdGreenContext(s *cuda.Stream) {
	id := streamOf(s)
	if c.greens[id] {
		return
	}
	release := s.HoldGreenContext()
	if release == nil {
		return
	}
	if c.greens == nil {
		c.greens = map[streamID]bool{}
	}
	c.greens[id] = true
	c.loose = append(c.loose, newBundle([]Operand{{Reason: "green context", Retainer: greenHold(release)}}))
}
