// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package native

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda"
)

// lastID numbers everything that C can name. A number is never used twice, so
// that a stale one finds nothing.
var lastID atomic.Uint64

// A table is the strong root of Go's objects that Python owns.
type table[T any] struct {
	what string // for errors

	mu sync.RWMutex
	m  map[uint64]T // guarded by mu
}

func newTable[T any](what string) *table[T] { return &table[T]{what: what, m: map[uint64]T{}} }

func (t *table[T]) put(v T) uint64 {
	id := lastID.Add(1)
	t.set(id, v)
	return id
}

func (t *table[T]) set(id uint64, v T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.m[id] = v
}

func (t *table[T]) get(id uint64) (T, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	v, ok := t.m[id]
	if !ok {
		return v, &cuda.ClosedError{What: t.what}
	}
	return v, nil
}

// take removes and returns the object; false if it is not there.
func (t *table[T]) take(id uint64) (T, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.m[id]
	delete(t.m, id)
	return v, ok
}

func (t *table[T]) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.m)
}

// ids returns the numbers of all objects, newest first.
func (t *table[T]) ids() []uint64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := slices.Sorted(maps.Keys(t.m))
	slices.Reverse(list)
	return list
}
