// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package finalize

// ring is a list of finalizers through their own links, so that taking one out
// of the middle needs no search and adding one needs no second allocation.
// Preconditions: the registry's mu is held.
type ring struct {
	root Finalizer // sentinel
}

func (l *ring) init() {
	l.root.prev, l.root.next = &l.root, &l.root
}

func (l *ring) append(f *Finalizer) {
	f.prev, f.next = l.root.prev, &l.root
	f.prev.next, l.root.prev = f, f
}

func (f *Finalizer) unlink() {
	f.prev.next, f.next.prev = f.next, f.prev
	f.prev, f.next = nil, nil
}
