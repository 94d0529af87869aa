// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"sync"
	"sync/atomic"
)

// companion is what another package keeps with a stream, and does when the
// stream is closed.
type companion struct {
	value atomic.Pointer[any]

	mu      sync.Mutex
	closed  bool     // guarded by mu
	onClose []func() // guarded by mu
}

// Companion returns what SetCompanion has set, or nil.
func (s *Stream) Companion() any {
	if v := s.companion.value.Load(); v != nil {
		return *v
	}
	return nil
}

// SetCompanion keeps v with s, for one package above this one that has
// something for each stream: it lives as long as s does. Nil forgets it.
func (s *Stream) SetCompanion(v any) {
	if v == nil {
		s.companion.value.Store(nil)
		return
	}
	s.companion.value.Store(&v)
}

// OnClose makes the first Close of s call f, on its goroutine. It returns false
// if s was closed already; then f is not called. Default streams are never
// closed.
func (s *Stream) OnClose(f func()) bool {
	c := &s.companion
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.onClose = append(c.onClose, f)
	return true
}

// close runs the functions of OnClose. No lock is held meanwhile.
func (c *companion) close() {
	c.mu.Lock()
	fs := c.onClose
	c.closed, c.onClose = true, nil
	c.mu.Unlock()
	for _, f := range fs {
		f()
	}
}
