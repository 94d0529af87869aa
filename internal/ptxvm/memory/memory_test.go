// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllocations(t *testing.T) {
	m := New(1 << 20)
	defer m.Close()
	seen := map[uint64]bool{}
	for _, size := range []uint64{1, 255, 256, 257, 65536, 65537, 300000} {
		addr, err := m.Alloc(size, "test")
		require.NoError(t, err)
		require.Zero(t, addr%AllocAlign)
		require.False(t, seen[addr])
		seen[addr] = true
		b, err := m.Slice(addr, size)
		require.NoError(t, err)
		b[0], b[size-1] = 1, 2
		_, err = m.Bytes(addr, size+1)
		require.Error(t, err)
		_, err = m.Bytes(addr-1, 1)
		require.Error(t, err)
		base, n, kind, ok := m.Range(addr + size - 1)
		require.True(t, ok)
		require.Equal(t, []any{addr, size, DeviceMemory}, []any{base, n, kind})
	}
	free, total := m.Info()
	require.Equal(t, total-(1+255+256+257+65536+65537+300000), free)
	_, err := m.Alloc(free+1, nil)
	require.ErrorIs(t, err, ErrOutOfMemory)
	for addr := range seen {
		require.ErrorIs(t, m.Free(addr+1, nil), ErrNotAllocated)
		require.NoError(t, m.Free(addr, nil))
		require.ErrorIs(t, m.Free(addr, nil), ErrNotAllocated)
	}
	free, total = m.Info()
	require.Equal(t, total, free)
}

func TestFreedRecordsAreForgotten(t *testing.T) {
	m := New(1 << 20)
	defer m.Close()
	for range 3 * quarantine {
		addr, err := m.Alloc(256, nil)
		require.NoError(t, err)
		require.NoError(t, m.Free(addr, nil))
	}
	require.LessOrEqual(t, len(m.allocs), 3*quarantine/2+1)
	require.Len(t, m.store.slabs, 1)
}

func TestReadOnlyHostRanges(t *testing.T) {
	m := New(1 << 20)
	defer m.Close()
	host, err := mapMemory(4096)
	require.NoError(t, err)
	defer unmapMemory(host)
	base := addressOf(host)
	m.AddReadOnly(uintptr(base), 100, HostPageable)
	require.True(t, m.ReadOnly(base, 100))
	require.True(t, m.ReadOnly(base+99, 1))
	require.False(t, m.ReadOnly(base+99, 2), "part of it is unknown")
	n := m.Near(base + 4)
	require.Equal(t, "at offset 4 of read-only pageable host memory of 100 bytes at "+fmt.Sprintf("%#x", base), n.String())
	_, err = m.Bytes(base, 100)
	require.NoError(t, err, "it can be read")

	// The same bytes by an object that may be written, and a larger one around it.
	m.AddHost(uintptr(base), 100, HostPageable)
	require.False(t, m.ReadOnly(base, 100))
	epoch := m.Epoch()
	m.RemoveHost(uintptr(base), 100)
	require.NotEqual(t, epoch, m.Epoch(), "sites that found the other range are looked up anew")
	require.True(t, m.ReadOnly(base, 100))
	m.AddHost(uintptr(base), 1000, HostPageable)
	require.False(t, m.ReadOnly(base, 100))
	m.RemoveHost(uintptr(base), 1000)
	m.RemoveReadOnly(uintptr(base), 100)
	_, err = m.Bytes(base, 1)
	require.Error(t, err)
	own, err := m.Alloc(16, nil)
	require.NoError(t, err)
	require.False(t, m.ReadOnly(own, 16))
}

func TestHostRanges(t *testing.T) {
	m := New(1 << 20)
	defer m.Close()
	host, err := mapMemory(4096)
	require.NoError(t, err)
	defer unmapMemory(host)
	base := addressOf(host)
	m.AddHost(uintptr(base), 100, HostPageable)
	m.AddHost(uintptr(base), 100, HostPageable)
	m.AddHost(uintptr(base+50), 1000, HostPinned)
	m.AddHost(uintptr(base+60), 10, HostManaged)
	for _, test := range []struct {
		off, size uint64
		ok        bool
	}{{0, 100, true}, {0, 101, false}, {50, 1000, true}, {80, 500, true}, {1049, 1, true}, {1050, 1, false}} {
		p, err := m.Bytes(base+test.off, test.size)
		require.Equal(t, test.ok, err == nil, test)
		if test.ok {
			require.Equal(t, uintptr(base+test.off), uintptr(p))
		}
	}
	m.RemoveHost(uintptr(base), 100)
	_, err = m.Bytes(base, 1)
	require.NoError(t, err)
	m.RemoveHost(uintptr(base), 100)
	_, err = m.Bytes(base, 1)
	require.Error(t, err)
	_, _, kind, ok := m.Range(base + 50)
	require.True(t, ok)
	require.Equal(t, HostPinned, kind)
}
