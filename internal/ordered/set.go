// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package ordered has the sets that graphs keep their edges in.
package ordered

import "slices"

// few is how many items are looked for one by one.
const few = 32

// A Set is a set of items in the order in which they were added. Adding, removing
// and looking for one of them takes constant time on average. Lists of its items stay
// as they are: changes never write to what they can see.
//
// The zero value is empty. Not safe for concurrent use, except for what [Set.All]
// returned.
type Set[K comparable] struct {
	// list has removed items too if there are many, namely those that at does not
	// have in that place.
	list []K
	at   map[K]int // nil until one of many items is looked for
}

// Of returns a set of items that differ, which takes over the list.
func Of[K comparable](items []K) Set[K] { return Set[K]{list: items} }

// Len returns how many items there are.
func (s *Set[K]) Len() int {
	if s.at != nil {
		return len(s.at)
	}
	return len(s.list)
}

// All returns the items. The list must not be changed, nor appended to.
func (s *Set[K]) All() []K {
	if s.at != nil && len(s.at) < len(s.list) {
		s.compact()
	}
	return slices.Clip(s.list)
}

// Next returns the first item in place i or later, and the place behind it. It
// reports false at the end. Places change when items are removed, and by All.
func (s *Set[K]) Next(i int) (item K, next int, ok bool) {
	for ; i < len(s.list); i++ {
		item = s.list[i]
		if s.at == nil {
			return item, i + 1, true
		}
		if at, known := s.at[item]; known && at == i {
			return item, i + 1, true
		}
	}
	var none K
	return none, i, false
}

// Has reports whether an item is there.
func (s *Set[K]) Has(item K) bool {
	_, ok := s.find(item)
	return ok
}

// Add adds an item that is not there, behind the others.
func (s *Set[K]) Add(item K) {
	if s.at != nil {
		s.at[item] = len(s.list)
	}
	s.list = append(s.list, item)
}

// Remove removes an item, and reports whether it was there.
func (s *Set[K]) Remove(item K) bool {
	at, ok := s.find(item)
	switch {
	case !ok:
		return false
	case s.at == nil:
		s.list = slices.Delete(slices.Clone(s.list), at, at+1)
		return true
	}
	delete(s.at, item)
	if len(s.list) > 2*len(s.at)+few {
		s.compact()
	}
	return true
}

func (s *Set[K]) find(item K) (at int, ok bool) {
	if s.at == nil && len(s.list) <= few {
		at = slices.Index(s.list, item)
		return at, at >= 0
	}
	if s.at == nil {
		s.at = make(map[K]int, len(s.list))
		for i, item := range s.list {
			s.at[item] = i
		}
	}
	at, ok = s.at[item]
	return at, ok
}

// compact makes a list without the removed items.
func (s *Set[K]) compact() {
	list := make([]K, 0, len(s.at))
	for i, item := range s.list {
		if at, ok := s.at[item]; ok && at == i {
			s.at[item] = len(list)
			list = append(list, item)
		}
	}
	s.list = list
	if len(list) <= few {
		s.at = nil
	}
}
