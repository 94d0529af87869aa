// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

func TestUninitialized(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	k := vmtest.Kernel(t, vmtest.Load(t, d, "test", copyPTX), "k")
	m := d.Memory()
	p, err := m.Alloc(256, "here")
	require.NoError(t, err)
	o := vmtest.Zeroed(t, d, 256)
	run := func() (found []string) {
		l := ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: vmtest.Pack(p, o), Watch: vmtest.Watching(&found)}
		require.NoError(t, k.Launch(&l))
		return found
	}
	require.Empty(t, run(), "what was allocated unwatched is left alone")
	m.Undefine(p)
	require.Regexp(t, `^uninitialized read in kernel k, block \(0,0,0\), thread \(0,0,0\) \(PTX line 20: ld\.global\.u32 %v, \[%x\]\): `+
		`4 bytes at 0x\w+ were never written; at offset 0 of device memory of 256 bytes at 0x\w+, allocated at here; 32 times$`,
		strings.Join(run(), "\n"))
	require.Empty(t, run(), "once is enough")

	m.Undefine(p)
	m.Define(p, 124)
	require.Regexp(t, `thread \(31,0,0\) .* at offset 124 of`, strings.Join(run(), "\n"))
	m.Undefine(p)
	m.Undefine(o)
	p, o = o, p
	require.Len(t, run(), 1)
	p, o = o, p
	require.Empty(t, run(), "the kernel itself wrote it")
	m.Undefine(p)
	m.DefineAll()
	require.Empty(t, run())
	require.False(t, m.Undefined())
}

func TestUninitializedCopy(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m := d.Memory()
	p, err := m.Alloc(10000, "here")
	require.NoError(t, err)
	m.Undefine(p)
	m.Define(p+8, 5000)
	var found []string
	v := vmtest.Watching(&found)
	v.Touch(m, p, 9000, false)
	v.Flush()
	require.Len(t, found, 1)
	require.Regexp(t, `^uninitialized read in this work: 4000 bytes at 0x\w+00 were never written; at offset 0 of device memory`, found[0])
}

func TestFreedMemoryIsForgotten(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m := d.Memory()
	p, err := m.Alloc(256, "here")
	require.NoError(t, err)
	m.Undefine(p)
	require.True(t, m.Undefined())
	m.Forget(p)
	require.False(t, m.Undefined())
	require.NoError(t, m.Free(p, "there"))
	m.Undefine(p)
	require.False(t, m.Undefined())
	n, ok := m.Freed(p + 8)
	require.True(t, ok)
	require.Contains(t, n.String(), "allocated at here, freed at there")
	_, ok = m.Freed(p + 256)
	require.False(t, ok)
}
