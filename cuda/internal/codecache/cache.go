// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"container/list"
	"errors"
	"io/fs"
	"sync"
)

// Config says what a cache keeps. The zero value keeps nothing.
type Config struct {
	// MemoryLimit is the most that is kept in memory, in bytes.
	MemoryLimit int64
	// Dir is the folder for entries on disk; empty: none are kept there.
	Dir string
	// DiskLimit is the most that is kept there, in bytes.
	DiskLimit int64
}

// Stats counts what a cache did since its creation or the last Clear.
type Stats struct {
	MemoryHits, DiskHits, Misses int64
	Uncacheable                  int64 // programs that cannot be kept
	Evicted                      int64 // entries that were removed to make room
	Damaged                      int64 // entries that were removed for what they were
	Failed                       int64 // entries that could not be written
	MemoryEntries, MemoryBytes   int64 // now
	DiskEntries, DiskBytes       int64 // now
}

// Cache is a cache. It is safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	c      Config                // guarded by mu
	stats  Stats                 // guarded by mu
	byKey  map[Key]*list.Element // guarded by mu; values are *kept
	order  list.List             // guarded by mu; the last used first
	bytes  int64                 // guarded by mu
	warned map[string]bool       // guarded by mu; each text is told once
}

type kept struct {
	key   Key
	entry *Entry
}

// Configure changes what c keeps, and forgets what it has in memory.
func (c *Cache) Configure(config Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.c = config
	c.forget()
}

// forget is called with the lock held.
func (c *Cache) forget() {
	c.byKey, c.bytes = map[Key]*list.Element{}, 0
	c.order.Init()
}

// IsOn reports whether c keeps anything.
func (c *Cache) IsOn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.c.MemoryLimit > 0 || c.c.Dir != ""
}

// Dir returns the folder that c was configured with.
func (c *Cache) Dir() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.c.Dir
}

func (c *Cache) folder() (folder, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return folder{c.c.Dir, c.c.DiskLimit}, c.c.Dir != ""
}

// Get returns an entry, or nil. warning is what users should know, told once.
func (c *Cache) Get(k Key) (e *Entry, warning string) {
	c.mu.Lock()
	element, found := c.byKey[k]
	if found {
		c.order.MoveToFront(element)
		e = element.Value.(*kept).entry
	}
	c.mu.Unlock()
	if found && e.Files.Unchanged() { // reads files only if there are any
		c.count(func(s *Stats) { s.MemoryHits++ })
		return e, ""
	}
	e = nil
	if f, on := c.folder(); on {
		var err error
		if e, err = f.read(k); err != nil {
			warning = c.warn(err)
		}
		if e != nil && e.Files.Unchanged() {
			c.count(func(s *Stats) { s.DiskHits++ })
			c.keep(k, e)
			return e, ""
		}
	}
	c.count(func(s *Stats) { s.Misses++ })
	return nil, warning
}

// Put adds an entry, which must not be changed any more. warning is as for Get.
func (c *Cache) Put(k Key, e *Entry) (warning string) {
	c.keep(k, e)
	f, on := c.folder()
	if !on {
		return ""
	}
	removed, err := f.write(k, e)
	c.count(func(s *Stats) {
		s.Evicted += int64(removed)
		if err != nil {
			s.Failed++
		}
	})
	return c.warn(err)
}

// Uncacheable counts a program that is not kept.
func (c *Cache) Uncacheable() { c.count(func(s *Stats) { s.Uncacheable++ }) }

func (c *Cache) count(change func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.stats)
}

// warn counts damage, and returns what to tell of an error. A disk that is full,
// or cannot be written to, is only counted: the program works without.
func (c *Cache) warn(err error) string {
	var refused *unsafeError
	damaged := errors.Is(err, errDamaged)
	if err == nil || errors.Is(err, fs.ErrNotExist) || !damaged && !errors.As(err, &refused) {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if damaged {
		c.stats.Damaged++
	}
	text := err.Error()
	if c.warned[text] {
		return ""
	}
	if c.warned == nil {
		c.warned = map[string]bool{}
	}
	c.warned[text] = true
	return text
}

// keep keeps an entry in memory, and forgets those that were not used for the
// longest time.
func (c *Cache) keep(k Key, e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, found := c.byKey[k]; found {
		c.drop(old)
	}
	if e.size() > c.c.MemoryLimit {
		return
	}
	c.byKey[k] = c.order.PushFront(&kept{k, e})
	c.bytes += e.size()
	for c.bytes > c.c.MemoryLimit {
		c.drop(c.order.Back())
		c.stats.Evicted++
	}
}

// drop is called with the lock held.
func (c *Cache) drop(element *list.Element) {
	old := c.order.Remove(element).(*kept)
	delete(c.byKey, old.key)
	c.bytes -= old.entry.size()
}

// Stats returns the counts, and what there is now.
func (c *Cache) Stats() Stats {
	var entries int
	var size int64
	if f, on := c.folder(); on {
		entries, size = f.count()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.MemoryEntries, s.MemoryBytes = int64(len(c.byKey)), c.bytes
	s.DiskEntries, s.DiskBytes = int64(entries), size
	return s
}

// Clear removes all entries, in memory and on disk, and zeroes the counts.
func (c *Cache) Clear() error {
	c.mu.Lock()
	c.forget()
	c.stats = Stats{}
	c.mu.Unlock()
	if f, on := c.folder(); on {
		return f.clear()
	}
	return nil
}
