// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

// A place is where a node is in an order. Labels grow from place to place, so that
// any two are compared at once.
type place struct {
	n          *Node // nil for the ends
	prev, next *place
	label      uint64
}

const (
	firstLabel = 1 << 62
	labelStep  = 1 << 32 // between places at the ends
	lastLabel  = 1<<63 - 1
)

func (p *place) unlink() {
	p.prev.next, p.next.prev = p.next, p.prev
	p.prev, p.next = nil, nil
}

// insert puts a place behind another, which may be the ends'.
func (o *order) insert(p, behind *place) {
	o.steps++
	label, ok := o.between(behind, behind.next)
	if !ok {
		o.spread(behind, behind.next)
		label, _ = o.between(behind, behind.next)
	}
	p.label, p.prev, p.next = label, behind, behind.next
	p.prev.next, p.next.prev = p, p
}

// between returns a label that is free between two places; false if there is none.
func (o *order) between(a, b *place) (label uint64, ok bool) {
	switch {
	case a == &o.ends && b == &o.ends:
		return firstLabel, true
	case a == &o.ends:
		if b.label > labelStep {
			return b.label - labelStep, true
		}
		return b.label / 2, b.label > 0
	case b == &o.ends:
		if a.label < lastLabel-labelStep {
			return a.label + labelStep, true
		}
		return a.label + (lastLabel-a.label+1)/2, a.label < lastLabel
	}
	return a.label + (b.label-a.label)/2, b.label-a.label > 1
}

// spread makes room for a label between two places: it spreads the labels of the
// smallest part that is not too dense for its size. That costs O(log n) places on
// average: Bender, Cole, Demaine, Farach-Colton and Zito, "Two Simplified Algorithms
// for Maintaining Order in a List", ESA 2002.
func (o *order) spread(a, b *place) {
	const growth = 1.5 // less than 2
	at := a
	if at == &o.ends {
		at = b
	}
	left, right, count, most := at, at, uint64(1), 1.0
	for size := uint64(2); ; size *= 2 {
		most *= 2 / growth
		low := at.label &^ (size - 1)
		for left.prev != &o.ends && left.prev.label >= low {
			left = left.prev
			count++
		}
		for right.next != &o.ends && right.next.label <= low+(size-1) {
			right = right.next
			count++
		}
		gap := size / (count + 1)
		if (float64(count) > most || gap < 2) && size <= lastLabel/2 {
			continue
		}
		for label := low + gap; ; label += gap {
			left.label = label
			o.steps++
			if left == right {
				return
			}
			left = left.next
		}
	}
}
