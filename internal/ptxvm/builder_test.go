// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm"
)

// builder makes a kernel by hand, for tests of the executor alone.
type builder struct {
	k *ptxir.Kernel
}

func newBuilder(args ...ptxir.Type) *builder {
	b := &builder{k: &ptxir.Kernel{Func: ptxir.Func{Name: "k"}}}
	for _, t := range args {
		size := uint32(t.Size())
		off := (b.k.ArgBytes + size - 1) &^ (size - 1)
		b.k.Args = append(b.k.Args, ptxir.Param{Type: t, Offset: off, Size: size, Align: size})
		b.k.Params = append(b.k.Params, &ptxir.Var{Space: ptxir.SpaceParam, Type: t, Size: uint64(size), Offset: off})
		b.k.ArgBytes = off + size
	}
	return b
}

func (b *builder) reg(c ptxir.Class) ptxir.Reg {
	b.k.Regs = append(b.k.Regs, c)
	return ptxir.Reg(len(b.k.Regs) - 1)
}

func (b *builder) imm(c ptxir.Class, v uint64) ptxir.Reg {
	r := b.reg(c)
	b.k.Consts = append(b.k.Consts, ptxir.Const{Reg: r, Bits: v})
	return r
}

func (b *builder) special(id ptxir.SpecialID) ptxir.Reg {
	r := b.reg(ptxir.Class32)
	b.k.Specials = append(b.k.Specials, ptxir.Special{Reg: r, ID: id})
	return r
}

// param loads parameter i.
func (b *builder) param(i int) ptxir.Reg {
	v := b.k.Params[i]
	addr := b.reg(ptxir.Class64)
	b.k.Consts = append(b.k.Consts, ptxir.Const{Reg: addr, Var: v})
	r := b.reg(v.Type.Class())
	b.do(ptxir.Instr{Op: ptxir.OpLd, Type: v.Type, Space: ptxir.SpaceParam, Dst: []ptxir.Reg{r}, Src: []ptxir.Reg{addr}})
	return r
}

// do appends an instruction to the last block.
func (b *builder) do(in ptxir.Instr) {
	if len(b.k.Blocks) == 0 {
		b.k.Blocks = append(b.k.Blocks, ptxir.Block{})
	}
	last := &b.k.Blocks[len(b.k.Blocks)-1]
	in.Guard = ptxir.NoReg
	last.Instrs = append(last.Instrs, in)
	last.Count++
}

// op appends an instruction with one destination and returns it.
func (b *builder) op(op ptxir.Op, t ptxir.Type, src ...ptxir.Reg) ptxir.Reg {
	d := b.reg(t.Class())
	b.do(ptxir.Instr{Op: op, Type: t, Dst: []ptxir.Reg{d}, Src: src})
	return d
}

// end closes the last block and opens the next.
func (b *builder) end(t ptxir.Term) {
	last := &b.k.Blocks[len(b.k.Blocks)-1]
	last.Term = t
	last.Count++
	b.k.Blocks = append(b.k.Blocks, ptxir.Block{})
}

func (b *builder) load(t *testing.T, d *ptxvm.Device, vars ...*ptxir.Var) *ptxvm.Kernel {
	if n := len(b.k.Blocks); len(b.k.Blocks[n-1].Instrs) == 0 && b.k.Blocks[n-1].Term.Kind == ptxir.TermJump {
		b.k.Blocks = b.k.Blocks[:n-1]
	}
	m, err := d.Load(&ptxir.Module{Name: "test", Kernels: []*ptxir.Kernel{b.k}, Vars: vars})
	require.NoError(t, err)
	k, err := m.Kernel("k")
	require.NoError(t, err)
	return k
}
