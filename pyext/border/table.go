// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda"
)

// lastID numbers everything that C can refer to. No number is used twice, so a
// stale one finds nothing.
var lastID atomic.Uint64

// NextID returns a new number.
func NextID() uint64 { return lastID.Add(1) }

// A Table keeps the Go objects that Python owns alive.
type Table[T any] struct {
	what string // for errors

	mu sync.RWMutex
	m  map[uint64]T // guarded by mu
}

// NewTable makes a Table; what names its objects in errors.
func NewTable[T any](what string) *Table[T] { return &Table[T]{what: what, m: map[uint64]T{}} }

// Put adds an object and returns its number.
func (t *Table[T]) Put(v T) uint64 {
	id := NextID()
	t.Set(id, v)
	return id
}

// Set adds an object under a number that NextID returned.
func (t *Table[T]) Set(id uint64, v T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.m[id] = v
}

// Get returns an object, or a ClosedError.
func (t *Table[T]) Get(id uint64) (T, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	v, ok := t.m[id]
	if !ok {
		return v, &cuda.ClosedError{What: t.what}
	}
	return v, nil
}

// Has reports what is says of an object, or false if there is none: the object is
// not taken meanwhile, and so what ends after that is valid. It must not block.
func (t *Table[T]) Has(id uint64, is func(T) bool) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	v, ok := t.m[id]
	return ok && is(v)
}

// Take removes and returns the object; false if there is none.
func (t *Table[T]) Take(id uint64) (T, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.m[id]
	delete(t.m, id)
	return v, ok
}

// Len counts the objects.
func (t *Table[T]) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.m)
}

// Count counts the objects of a kind.
func (t *Table[T]) Count(is func(T) bool) (n int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, v := range t.m {
		if is(v) {
			n++
		}
	}
	return n
}

// IDs returns the numbers of all objects, newest first.
func (t *Table[T]) IDs() []uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := slices.Sorted(maps.Keys(t.m))
	slices.Reverse(list)
	return list
}
