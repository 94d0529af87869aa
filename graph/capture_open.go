// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda"
)

// captures are the open captures.
var captures openCaptures

type openCaptures struct {
	mu   sync.Mutex
	open []*Capture // guarded by mu
}

func (o *openCaptures) add(c *Capture) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = append(o.open, c)
	live.captures.Add(1)
}

func (o *openCaptures) remove(c *Capture) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.open)
	o.open = slices.DeleteFunc(o.open, func(d *Capture) bool { return d == c })
	live.captures.Add(int64(len(o.open) - n))
}

func (o *openCaptures) list() []*Capture {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.open)
}

// supersede ends earlier captures of s after the driver has begun a new one:
// they must be over, although the driver did not say so when they ended.
func (o *openCaptures) supersede(s *cuda.Stream) {
	for _, c := range o.list() {
		same := c.stream == s
		if !s.IsDefault() { // a default stream may be another one in each thread
			same = same || c.stream.Handle() == s.Handle() && c.stream.Context() == s.Context()
		}
		if same {
			releaseAll(c.over())
		}
	}
}
