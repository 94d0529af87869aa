// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

// order returns the blocks that can be reached, in weak topological order,
// with their targets renumbered. Each loop's blocks follow each other, so that
// what comes after a loop has a higher number than all of it, and apart from
// loops the order is a reverse post-order: where paths meet has a higher
// number than the paths. Blocks that only follow one another are joined.
//
// F. Bourdoncle, "Efficient chaotic iteration strategies with widenings"
// (1993), figure 4.
//
// It returns nothing where loops are nested deeper than mostLoops: each of them
// is walked once for every loop around it.
func order(blocks []*block) []Block {
	w := walk{blocks: blocks, number: make([]int, len(blocks))}
	w.skip()
	w.join()
	w.visit(0)
	if w.depth > mostLoops {
		return nil
	}
	out := make([]Block, len(w.order))
	place := make([]int, len(blocks))
	for i := range w.order {
		place[w.order[len(w.order)-1-i]] = i
	}
	for i := range w.order {
		b := &blocks[w.order[len(w.order)-1-i]].Block
		for k, t := range b.Term.Targets {
			b.Term.Targets[k] = place[t]
		}
		out[i] = *b
	}
	return out
}

// mostLoops is far more than programs have, also if branches lead into their loops.
const mostLoops = 1000

// done is the number of a block that has its place.
const done = int(^uint(0) >> 1)

type walk struct {
	blocks []*block
	number []int // 0: not met
	met    int
	stack  []int
	order  []int // last first
	depth  int   // of the loops around what is visited; above mostLoops all ends
}

// skip leads jumps to empty blocks on to where those jump.
func (w *walk) skip() {
	const unknown, asked = -1, -2
	ends := make([]int, len(w.blocks))
	for i := range ends {
		ends[i] = unknown
	}
	var passed []int
	end := func(t int) int {
		passed = passed[:0]
		for ends[t] == unknown && w.blocks[t].isEmpty() {
			ends[t] = asked
			passed = append(passed, t)
			t = w.blocks[t].Term.Targets[0]
		}
		if ends[t] >= 0 {
			t = ends[t]
		} // otherwise it is not empty, or in a ring of empty blocks: an endless loop of the program's
		for _, p := range passed {
			ends[p] = t
		}
		return t
	}
	for _, b := range w.blocks {
		for k, t := range b.Term.Targets {
			b.Term.Targets[k] = end(t)
		}
	}
}

// isEmpty reports whether the block does nothing but jump.
func (b *block) isEmpty() bool {
	return len(b.Instrs) == 0 && b.Count == 0 && b.Term.Kind == TermJump
}

// join appends a block to the one that alone jumps to it.
func (w *walk) join() {
	reached := w.predecessors()
	joined := func(i int) (t int, isJoined bool) { // what follows block i
		if reached[i] == 0 || w.blocks[i].Term.Kind != TermJump {
			return 0, false
		}
		t = w.blocks[i].Term.Targets[0]
		return t, t != 0 && t != i && reached[t] == 1
	}
	follows := make([]bool, len(w.blocks))
	for i := range w.blocks {
		if t, isJoined := joined(i); isJoined {
			follows[t] = true
		}
	}
	for i, b := range w.blocks {
		if follows[i] {
			continue // from the first of a row on, each block is copied once
		}
		for t, isJoined := joined(i); isJoined; t, isJoined = joined(i) {
			next := w.blocks[t]
			b.Instrs = append(b.Instrs, next.Instrs...)
			b.Count += next.Count
			b.Term = next.Term
			next.Instrs, next.Term = nil, Term{Kind: TermExit}
			reached[t] = 0
		}
	}
}

// predecessors counts for each block the edges that lead to it from blocks
// that can be reached themselves; the entry has one more.
func (w *walk) predecessors() []int {
	count := make([]int, len(w.blocks))
	count[0] = 1
	work := []int{0}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, t := range w.blocks[i].Term.Targets {
			if count[t]++; count[t] == 1 {
				work = append(work, t)
			}
		}
	}
	return count
}

// visit places the blocks that can be reached from v and returns the lowest
// number that one of them leads back to.
func (w *walk) visit(v int) int {
	w.stack = append(w.stack, v)
	w.met++
	w.number[v] = w.met
	head, loop := w.met, false
	for _, s := range w.blocks[v].Term.Targets {
		low := w.number[s]
		if low == 0 {
			low = w.visit(s)
		}
		if w.depth > mostLoops {
			return 0
		}
		if low <= head {
			head, loop = low, true
		}
	}
	if head != w.number[v] {
		return head
	}
	w.number[v] = done
	for {
		top := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		if top == v {
			break
		}
		// Inside the loop at v the order is found anew, without v.
		w.number[top] = 0
	}
	if loop {
		w.depth++
		for _, s := range w.blocks[v].Term.Targets {
			if w.number[s] == 0 && w.depth <= mostLoops {
				w.visit(s)
			}
		}
		if w.depth > mostLoops {
			return 0
		}
		w.depth--
	}
	w.order = append(w.order, v)
	return head
}
