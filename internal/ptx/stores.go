// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import "slices"

// Stores tells, for each parameter of every entry in text, whether something may
// be stored through it: whether an address that was computed from the parameter
// may be written to. False is a promise, true is not: an address that the
// analysis loses sight of, in memory or in a call, may be written to.
//
// It does not follow values through predicates, of which no compiler makes
// addresses. What is loaded from memory that a parameter points to is not an
// address computed from the parameter.
//
// Errors: a [*SyntaxError].
func Stores(text string) (map[string][]bool, error) {
	m, err := Parse(text)
	if err != nil {
		return nil, err
	}
	entries := map[string][]bool{}
	for _, item := range m.Items {
		if f, ok := item.(*Function); ok && f.Entry && f.Body != nil {
			entries[f.Name] = stores(f)
		}
	}
	return entries, nil
}

// A flow follows the parameters of one entry: from where to where values go, and
// the names whose value may be written to or lost sight of. It knows neither the
// order of instructions nor scopes, so it may only see too much.
type flow struct {
	index map[string]int // of every name
	edges [][2]int       // from, to
	sinks []int
	param map[int]bool // names that are parameters of the entry
}

// mostOrigins is how many parameters are told apart; those after them are one.
const mostOrigins = 64

func stores(f *Function) []bool {
	w := &flow{index: map[string]int{}, param: map[int]bool{}}
	for _, p := range f.Params {
		w.param[w.name(p.Name)] = true
	}
	w.block(f.Body)
	origins := make([]uint64, len(w.index))
	for i, p := range f.Params {
		origins[w.index[p.Name]] |= 1 << min(i, mostOrigins-1)
	}
	for changed := true; changed; {
		changed = false
		for _, e := range w.edges {
			if more := origins[e[1]] | origins[e[0]]; more != origins[e[1]] {
				origins[e[1]], changed = more, true
			}
		}
	}
	var written uint64
	for _, n := range w.sinks {
		written |= origins[n]
	}
	list := make([]bool, len(f.Params))
	for i := range list {
		list[i] = written>>min(i, mostOrigins-1)&1 != 0
	}
	return list
}

func (w *flow) name(s string) int {
	i, found := w.index[s]
	if !found {
		i = len(w.index)
		w.index[s] = i
	}
	return i
}

func (w *flow) block(b *Block) {
	for _, s := range b.Statements {
		switch s := s.(type) {
		case *Block:
			w.block(s)
		case *Instruction:
			w.instruction(s)
		}
	}
}

// Instructions that read memory at the addresses among their operands after the
// first, which they set.
var readers = []string{"ld", "ldu", "ldmatrix", "tex", "tld4", "suld", "txq", "suq"}

// Instructions of one bit for each thread.
var predicates = []string{"setp", "isspacep", "testp"}

func (w *flow) instruction(i *Instruction) {
	op, modifiers, operands := i.Mnemonic.Op, i.Mnemonic.Modifiers, i.Operands
	if len(operands) == 0 {
		return
	}
	space := slices.Contains(modifiers, "param")
	for _, m := range modifiers {
		space = space || m == "param::entry" || m == "param::func"
	}
	switch {
	case op == "ld" && space && len(operands) >= 2:
		w.move(operands[1:2], operands[:1])
	case op == "st" && space && len(operands) >= 2:
		w.move(operands[1:], operands[:1])
	case slices.Contains(readers, op), op == "wmma" && modifiers[0] == "load":
		w.use(operands) // a parameter's own address
	case op == "prefetch" || op == "prefetchu":
		w.use(operands)
	case op == "cp" && modifiers[0] == "async" && len(operands) >= 2:
		w.sink(operands[:1])
		w.sink(operands[2:])
		w.use(operands[1:2])
	case op == "call" || slices.ContainsFunc(operands, hasAddress):
		w.sink(operands)
	case slices.Contains(predicates, op):
		w.use(operands)
	default:
		w.use(operands[1:])
		w.move(operands[1:], operands[:1])
	}
}

// move notes that what the operands of to are may be computed from those of from.
func (w *flow) move(from, to []Operand) {
	for _, t := range names(to, nil) {
		for _, f := range names(from, nil) {
			w.edges = append(w.edges, [2]int{w.name(f), w.name(t)})
		}
	}
}

// sink notes that the operands' values may be written to, or lost sight of.
func (w *flow) sink(operands []Operand) {
	for _, n := range names(operands, nil) {
		w.sinks = append(w.sinks, w.name(n))
	}
}

// use notes that operands were used, other than to load a parameter: whoever has
// the address of a parameter itself may load it unseen.
func (w *flow) use(operands []Operand) {
	for _, n := range names(operands, nil) {
		if i := w.name(n); w.param[i] {
			w.sinks = append(w.sinks, i)
		}
	}
}

// names appends the names in operands.
func names(operands []Operand, list []string) []string {
	for _, o := range operands {
		if o.Name != "" {
			list = append(list, o.Name)
		}
		list = names(o.Elems, list)
	}
	return list
}

func hasAddress(o Operand) bool {
	return o.Kind == OperandAddress || slices.ContainsFunc(o.Elems, hasAddress)
}
