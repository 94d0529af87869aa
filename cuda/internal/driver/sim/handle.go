// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"sync"
	"sync/atomic"
)

// Handles are numbers, not addresses. They are never reused in a process, so
// that stale ones are detected, and are not canonical addresses on any machine,
// so that C code that dereferences one faults at once.
const handleBase = 0x2C<<56 | 1<<55

var handleCount atomic.Uint64

// table maps the handles of one kind to what they name.
type table[H ~uintptr | ~uint64, T any] struct {
	mu sync.RWMutex
	m  map[H]*T // guarded by mu
}

func (t *table[H, T]) add(v *T) H {
	h := H(handleBase + handleCount.Add(1)<<4)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[H]*T{}
	}
	t.m[h] = v
	return h
}

// put adds an object whose handle is given.
func (t *table[H, T]) put(h H, v *T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[H]*T{}
	}
	t.m[h] = v
}

// get returns nil for a handle that is not valid.
func (t *table[H, T]) get(h H) *T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.m[h]
}

// take removes a handle; of two calls that race to destroy one object, one gets
// nil.
func (t *table[H, T]) take(h H) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.m[h]
	delete(t.m, h)
	return v
}

// remove takes away all handles in hs.
func (t *table[H, T]) remove(hs ...H) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range hs {
		delete(t.m, h)
	}
}

// all returns the objects that there are.
func (t *table[H, T]) all() []*T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := make([]*T, 0, len(t.m))
	for _, v := range t.m {
		list = append(list, v)
	}
	return list
}

// removeIf takes away and returns the objects that match.
func (t *table[H, T]) removeIf(match func(*T) bool) []*T {
	t.mu.Lock()
	defer t.mu.Unlock()
	var gone []*T
	for h, v := range t.m {
		if match(v) {
			delete(t.m, h)
			gone = append(gone, v)
		}
	}
	return gone
}
