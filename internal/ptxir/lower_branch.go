// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"github.com/cudago/cudago/internal/ptx"
)

// bra branches to a label.
//
// PTX ISA, "Control Flow Instructions".
func bra(b *body) {
	b.count(1)
	t := Term{Kind: TermJump, Targets: []int{following}}
	if b.guard != NoReg {
		t = Term{Kind: TermBranch, Pred: b.guard, Not: b.guardNot, Targets: []int{following, following}}
	}
	b.goesTo(len(b.blocks)-1, 0, b.label(&b.ins.Operands[0]))
	b.end(t)
}

// label resolves the name of a label.
func (b *body) label(x *ptx.Operand) *label {
	if x.Kind != ptx.OperandName || x.Component != "" || x.Value.Bits != 0 {
		b.invalid("%s: expected a label", b.ins.Mnemonic)
	}
	return b.labelNamed(x.Name)
}

func (b *body) labelNamed(name string) *label {
	n, _ := b.find(name)
	if n == nil || n.label == nil {
		b.invalid("%s is not a label of this function", name)
	}
	return n.label
}

func (b *body) goesTo(block, target int, l *label) {
	b.fixups = append(b.fixups, fixup{block: block, target: target, label: l, line: b.pos.Line})
}

// mostListed bounds what each brx.idx has of its own: many may name one long list.
const mostListed = 1 << 20

// brx branches to an element of a .branchtargets list.
func brx(b *body) {
	b.count(2)
	index := b.source(&b.ins.Operands[0], U32)
	list, _ := b.find(b.ins.Operands[1].Name)
	if list == nil || list.targets == nil || list.targets.Kind != ptx.BranchTargets {
		b.invalid("%s needs the label of a .branchtargets", b.ins.Mnemonic)
	}
	if b.listed += len(list.targets.Names); b.listed > mostListed {
		b.invalid("all lists of all %s in this function have more than %d labels", b.ins.Mnemonic, mostListed)
	}
	b.guarded(func() {
		t := Term{Kind: TermSwitch, Index: index}
		for i, name := range list.targets.Names {
			b.goesTo(len(b.blocks)-1, i, b.labelNamed(name))
			t.Targets = append(t.Targets, following)
		}
		b.end(t)
	})
}

// ret returns; from a kernel it exits.
func ret(b *body) {
	b.count(0)
	if b.entry {
		exit(b)
		return
	}
	b.guarded(func() {
		b.storeRegisterReturns()
		b.end(Term{Kind: TermRet})
	})
}

func exit(b *body) {
	b.count(0)
	b.guarded(func() { b.end(Term{Kind: TermExit}) })
}
