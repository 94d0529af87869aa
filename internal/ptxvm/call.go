// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
)

// decodeCall resolves a call.
func (d *decoder) decodeCall(c *ptxir.Call) (*callSite, error) {
	out := &callSite{noReturn: c.NoReturn}
	for _, list := range []struct {
		vars []*ptxir.Var
		to   *[]argument
	}{{c.Args, &out.args}, {c.Rets, &out.rets}} {
		for _, v := range list.vars {
			off, ok := d.local[v]
			if !ok {
				return nil, fmt.Errorf("BUG: call argument %s is not a local variable", v.Name)
			}
			*list.to = append(*list.to, argument{caller: off, size: uint32(v.Size)})
		}
	}
	switch {
	case c.Builtin != ptxir.BuiltinNone:
		if int(c.Builtin) >= len(builtins) || builtins[c.Builtin] == nil {
			return nil, fmt.Errorf("built-in function %d is not supported", c.Builtin)
		}
		out.builtin = builtins[c.Builtin]
		return out, nil
	case c.Func != nil:
		out.fn = d.funcs[c.Func]
		return out, matchArgs(c, c.Func)
	}
	var err error
	out.target, err = d.Operand(c.Target, ptxir.Class64)
	out.indirect = map[uint64]*function{}
	for f, fn := range d.funcs {
		if matchArgs(c, f) == nil && f != &d.kernel.ir.Func {
			out.indirect[d.module.funcAddress(f)] = fn
		}
	}
	return out, err
}

// matchArgs checks a call's arguments against a function's parameters.
func matchArgs(c *ptxir.Call, f *ptxir.Func) error {
	if len(c.Args) != len(f.Params) || len(c.Rets) != len(f.Rets) {
		return fmt.Errorf("call of %s with %d arguments and %d results, want %d and %d", f.Name, len(c.Args), len(c.Rets), len(f.Params), len(f.Rets))
	}
	for i, v := range c.Args {
		if v.Size != f.Params[i].Size {
			return fmt.Errorf("call of %s: argument %d has %d bytes, want %d", f.Name, i, v.Size, f.Params[i].Size)
		}
	}
	for i, v := range c.Rets {
		if v.Size != f.Rets[i].Size {
			return fmt.Errorf("call of %s: result %d has %d bytes, want %d", f.Name, i, v.Size, f.Rets[i].Size)
		}
	}
	return nil
}

// costBackEdges finds the loops that may wait for other threads, and makes
// their back-edges cost more, so that the others get their turn soon.
func costBackEdges(f *ptxir.Func, fn *function) {
	for i := range fn.blocks {
		fn.blocks[i].cost = 1
	}
	for i := range f.Blocks {
		for _, target := range f.Blocks[i].Term.Targets {
			if target > i {
				continue
			}
			for b := target; b <= i; b++ {
				if maySpin(&f.Blocks[b]) {
					fn.blocks[i].cost = lane.SpinCost
				}
			}
		}
	}
}

// maySpin reports whether a block reads what other threads may write, as a loop
// does that waits for them.
func maySpin(b *ptxir.Block) bool {
	for i := range b.Instrs {
		switch in := &b.Instrs[i]; in.Op {
		case ptxir.OpAtom:
			if in.Atom == ptxir.AtomCas || in.Atom == ptxir.AtomExch {
				return true
			}
		case ptxir.OpLd:
			if in.Mod&(ptxir.ModVolatile|ptxir.ModAcquire) != 0 {
				return true
			}
		case ptxir.OpNanosleep, ptxir.OpMbarTest:
			return true
		}
	}
	return false
}
