// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

// Lend leaves n to the caller, who updates it by calls of its own from now on,
// and holds what later launches use. take looks at the parameters and operands
// that n has now: if it returns true it has taken holds of its own, and n gives
// up the operands, as in an update. n is lent until [ExecNode.Return], and is
// not used in between.
//
// It reports whether n is lent. Not lent are nodes of bodies, and those whose
// node was removed from its graph: the caller cannot check all that an update
// of these needs.
func (n *ExecNode) Lend(take func(params any, operands []Operand) bool) (lent bool, err error) {
	var f *retirement
	err = n.change(func() error {
		// It would fail for a removed node, in whose place the driver has none.
		if err := n.driver(func() error { return nil }); err != nil {
			return err
		}
		n.x.mu.Lock()
		params, b := n.params, n.bundle
		n.x.mu.Unlock()
		if b == nil || n.of.g.owner != nil || !take(params, b.operands) {
			return nil
		}
		lent, f = true, n.commit(nil, params)
		return nil
	})
	if f != nil {
		f.start()
	}
	return lent, err
}

// Return ends a loan: n has these parameters and operands now, which it takes
// over. They are not reported to OnBundle: the caller knows them.
func (n *ExecNode) Return(params any, operands []Operand) {
	n.x.mu.Lock()
	defer n.x.mu.Unlock()
	n.params, n.bundle, n.since = params, newBundle(operands), unknown
}

// Retire releases operands of a lent node that launches under way may use, once
// these have ended.
//
// Preconditions: no launch is inside the driver, and none begins during the
// call.
func (x *Exec) Retire(operands []Operand) {
	x.retirement([]*bundle{newBundle(operands)}, false).start()
}
