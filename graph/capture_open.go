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
	// beginning is held while a capture begins, until it is in open.
	beginning sync.Mutex

	mu   sync.Mutex
	open []*Capture // guarded by mu; the latest first: an earlier one of its stream is over, see supersede
}

// begin begins the driver's capture for c.
func (o *openCaptures) begin(c *Capture, mode cuda.CaptureMode) error {
	o.beginning.Lock()
	defer o.beginning.Unlock()
	if err := c.stream.BeginCapture(mode); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = slices.Insert(o.open, 0, c)
	live.captures.Add(1)
	return nil
}

// settle returns once the captures that the driver has begun for this package so
// far are in the list.
func (o *openCaptures) settle() {
	o.beginning.Lock()
	defer o.beginning.Unlock()
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

// supersede ends earlier captures of the stream of begun, after the driver has begun
// that: they must be over, although the driver did not say so when they ended.
func (o *openCaptures) supersede(begun *Capture) {
	s := begun.stream
	for _, c := range o.list() {
		if c == begun {
			continue
		}
		same := c.stream.Handle() == s.Handle() && c.stream.Context() == s.Context()
		if !same || c.thread != begun.thread {
			continue
		}
		if c.stream != s { // another one of the same handle, which the driver does not tell apart
			c.stream.CaptureOver()
		}
		releaseAll(c.over())
	}
}
