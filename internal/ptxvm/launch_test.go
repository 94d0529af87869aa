// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// vectorAdd is c[i] = a[i] + b[i] for i < n.
func vectorAdd() *builder {
	b := newBuilder(ptxir.U64, ptxir.U64, ptxir.U64, ptxir.U32)
	x, y, z, n := b.param(0), b.param(1), b.param(2), b.param(3)
	i := b.reg(ptxir.Class32)
	b.do(ptxir.Instr{
		Op: ptxir.OpMad, Mode: ptxir.ModeLo, Type: ptxir.S32, Dst: []ptxir.Reg{i},
		Src: []ptxir.Reg{b.special(ptxir.SpecialCtaidX), b.special(ptxir.SpecialNtidX), b.special(ptxir.SpecialTidX)},
	})
	p := b.reg(ptxir.ClassPred)
	b.do(ptxir.Instr{Op: ptxir.OpSetp, Cmp: ptxir.CmpGe, Type: ptxir.S32, Dst: []ptxir.Reg{p}, Src: []ptxir.Reg{i, n}})
	b.end(ptxir.Term{Kind: ptxir.TermBranch, Pred: p, Targets: []int{2, 1}})
	off := b.reg(ptxir.Class64)
	four := b.imm(ptxir.Class32, 4)
	b.do(ptxir.Instr{Op: ptxir.OpMul, Mode: ptxir.ModeWide, Type: ptxir.S32, Dst: []ptxir.Reg{off}, Src: []ptxir.Reg{i, four}})
	var v [2]ptxir.Reg
	for j, base := range []ptxir.Reg{x, y} {
		addr := b.op(ptxir.OpAdd, ptxir.S64, base, off)
		v[j] = b.reg(ptxir.Class32)
		b.do(ptxir.Instr{Op: ptxir.OpLd, Type: ptxir.F32, Space: ptxir.SpaceGlobal, Dst: []ptxir.Reg{v[j]}, Src: []ptxir.Reg{addr}})
	}
	sum := b.op(ptxir.OpAdd, ptxir.F32, v[0], v[1])
	addr := b.op(ptxir.OpAdd, ptxir.S64, z, off)
	b.do(ptxir.Instr{Op: ptxir.OpSt, Type: ptxir.F32, Space: ptxir.SpaceGlobal, Src: []ptxir.Reg{addr, sum}, Pos: ptxir.Pos{Line: 42}, Text: "st.global.f32 [%rd10], %f3;"})
	b.end(ptxir.Term{Kind: ptxir.TermJump, Targets: []int{2}})
	b.end(ptxir.Term{Kind: ptxir.TermRet})
	return b
}

func floats(t *testing.T, d *ptxvm.Device, addr uint64, n int) []byte {
	b, err := d.Memory().Slice(addr, uint64(4*n))
	require.NoError(t, err)
	return b
}

func TestVectorAdd(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	k := vectorAdd().load(t, d)
	const n = 1000
	var addrs [3]uint64
	for i := range addrs {
		var err error
		addrs[i], err = d.Memory().Alloc(4*n, "here")
		require.NoError(t, err)
	}
	x, y, z := floats(t, d, addrs[0], n), floats(t, d, addrs[1], n), floats(t, d, addrs[2], n)
	for i := range n {
		binary.LittleEndian.PutUint32(x[4*i:], math.Float32bits(float32(i)))
		binary.LittleEndian.PutUint32(y[4*i:], math.Float32bits(0.5))
	}
	var count uint64
	launch := ptxvm.Launch{
		Grid: [3]uint32{8, 1, 1}, Block: [3]uint32{128, 1, 1}, Instructions: &count,
		Params: vmtest.Pack(addrs[0], addrs[1], addrs[2], uint32(n)),
	}
	require.NoError(t, k.Launch(&launch))
	for i := range n {
		require.Equal(t, float32(i)+0.5, math.Float32frombits(binary.LittleEndian.Uint32(z[4*i:])))
	}
	require.Equal(t, uint64(1024*8+1000*9), count)

	t.Run("out of bounds", func(t *testing.T) {
		launch := launch
		launch.Params = vmtest.Pack(addrs[0], addrs[1], addrs[2], uint32(n+1))
		var f *fault.Fault
		require.ErrorAs(t, k.Launch(&launch), &f)
		require.Equal(t, fault.IllegalAddress, f.Kind)
		require.Equal(t, addrs[0]+4*n, f.Address)
		require.Equal(t, [3]uint32{7, 0, 0}, f.Block)
		require.Equal(t, [3]uint32{n - 7*128, 0, 0}, f.Thread)
		require.Equal(t, addrs[0], f.Nearest.Base)
		require.Contains(t, f.Error(), "0 bytes past the end of device memory of 4000 bytes")
	})
	t.Run("use after free", func(t *testing.T) {
		require.NoError(t, d.Memory().Free(addrs[2], "there"))
		var f *fault.Fault
		require.ErrorAs(t, k.Launch(&launch), &f)
		require.Equal(t, 42, f.PTXLine)
		require.True(t, f.Nearest.Freed)
		require.Contains(t, f.Error(), "freed device memory of 4000 bytes")
		require.Contains(t, f.Error(), "allocated at here, freed at there")
	})
}

// Code with more local memory than a thread can have is loaded, says how much it
// is, and is not launched: so an H200 has it.
func TestTooMuchLocalMemory(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m := vmtest.Load(t, d, "test", `.version 7.0 .target sm_75 .address_size 64
.func f() { .local .b8 x[300000]; .reg .b64 %p; mov.u64 %p, x; st.local.u8 [%p], 1; ret; }
.func g() { .local .b8 x[2147483000]; ret; }
.entry fits() { call f; ret; }
.entry alone() { .local .b8 x[523280]; ret; }
.entry chain() { .local .b8 x[300000]; call f; ret; }
.entry most() { .local .b8 x[2147483000]; call g; ret; }`)
	one := &ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	require.NoError(t, vmtest.Kernel(t, m, "fits").Launch(one))
	for name, size := range map[string]uint32{"alone": 523280, "chain": 600000, "most": math.MaxInt32} {
		k := vmtest.Kernel(t, m, name)
		require.Equal(t, size, k.Attributes().LocalBytes)
		var refused *ptxvm.LaunchError
		require.ErrorAs(t, k.Launch(one), &refused)
		require.ErrorContains(t, refused, "bytes of local memory for each thread, at most 523264")
	}
}

// Functions that are called through their addresses count to what a kernel has.
func TestTooMuchSharedMemoryBehindAddresses(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m := vmtest.Load(t, d, "test", `.version 7.0 .target sm_75 .address_size 64
.func f() { .shared .b8 x[4294967295]; .reg .b32 %r; mov.u32 %r, x; ret; }
.func g() { .shared .b8 y[4294967295]; .reg .b32 %r; mov.u32 %r, y; ret; }
.global .u64 table[2] = {f, g};
.entry k() { .reg .b64 %p; ld.global.u64 %p, [table]; void: .callprototype _ (); call %p, void; ret; }`)
	_, err := m.Kernel("k")
	require.ErrorContains(t, err, "kernel k: it and the functions that it may call have 8589934590 bytes of static shared memory")
}
