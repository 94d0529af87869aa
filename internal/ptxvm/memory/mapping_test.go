// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const granule = MappingGranularity

func reserve(t *testing.T, size uint64) *Reservation {
	t.Helper()
	r, err := Reserve(size, 0)
	require.NoError(t, err)
	require.Zero(t, r.Base()%granule)
	return r
}

// mapAt maps fresh memory of n granules, with access.
func mapAt(t *testing.T, m *Memory, r *Reservation, addr, n uint64) {
	t.Helper()
	p, err := m.Create(n * granule)
	require.NoError(t, err)
	require.NoError(t, m.Map(r, addr, p, "a test"))
	m.SetAccess(addr, n*granule, m, true)
	m.Release(p)
}

func TestMappingsSideBySideAreOneRange(t *testing.T) {
	m := New(4 * granule)
	defer m.Close()
	r := reserve(t, 8*granule)
	base := r.Base()
	mapAt(t, m, r, base, 1)
	mapAt(t, m, r, base+3*granule, 1)
	_, err := m.Bytes(base+granule-2, 4)
	require.ErrorContains(t, err, "at offset 2097150 of mapped memory of 2097152 bytes")
	mapAt(t, m, r, base+granule, 2)
	_, err = m.Create(granule)
	require.ErrorIs(t, err, ErrOutOfMemory)

	want := []byte{1, 2, 3, 4}
	require.NoError(t, m.Write(base+granule-2, want))
	got := make([]byte, 4)
	require.NoError(t, m.Read(got, base+granule-2))
	require.Equal(t, want, got)
	start, size, kind, ok := m.Range(base + 2*granule)
	require.True(t, ok)
	require.Equal(t, []uint64{base, 4 * granule}, []uint64{start, size})
	require.Equal(t, VirtualMemory, kind)

	m.SetAccess(base+3*granule, granule, m, false)
	_, err = m.Bytes(base+3*granule, 4)
	require.ErrorContains(t, err, "at offset 0 of mapped memory without access of 2097152 bytes")
	for _, at := range []uint64{0, 1, 3} {
		m.Unmap(base+at*granule, "the end")
	}
	free, total := m.Info()
	require.Equal(t, total, free)
	_, err = m.Bytes(base, 1)
	require.ErrorContains(t, err, "at offset 0 of freed mapped memory of 2097152 bytes")
	require.ErrorContains(t, err, "allocated at a test, freed at the end")
	n, ok := m.Freed(base + 5)
	require.True(t, ok)
	require.EqualValues(t, 5, n.Offset)
	_, ok = m.Freed(base + 4*granule)
	require.False(t, ok)
	r.Free()
}

func TestOneMemoryAtTwoAddresses(t *testing.T) {
	m := New(1 << 30)
	defer m.Close()
	r := reserve(t, 4*granule)
	p, err := m.Create(granule)
	require.NoError(t, err)
	p.Bytes()[7] = 42
	for _, at := range []uint64{r.Base(), r.Base() + 2*granule} {
		require.NoError(t, m.Map(r, at, p, nil))
		m.SetAccess(at, granule, m, true)
	}
	m.Release(p)
	b := make([]byte, 1)
	require.NoError(t, m.Read(b, r.Base()+7))
	require.EqualValues(t, 42, b[0])
	require.NoError(t, m.Write(r.Base()+7, []byte{43}))
	m.Unmap(r.Base(), nil)
	require.NoError(t, m.Read(b, r.Base()+2*granule+7))
	require.EqualValues(t, 43, b[0])
	free, total := m.Info()
	require.EqualValues(t, granule, total-free)
}

func TestReservationsBehindOneAnother(t *testing.T) {
	m := New(1 << 30)
	defer m.Close()
	first := reserve(t, 2*granule)
	require.Nil(t, first.Behind(3*granule), "more than there is room for")
	second := first.Behind(granule)
	require.NotNil(t, second)
	require.Equal(t, first.Base()+2*granule, second.Base())
	require.Nil(t, first.Behind(granule), "taken")
	second.Free()
	second = first.Behind(granule)
	require.NotNil(t, second, "free again")
	require.True(t, second.Contains(second.Base(), granule))
	require.False(t, second.Contains(second.Base(), granule+1))
	require.False(t, second.Contains(first.Base(), granule))

	mapAt(t, m, first, first.Base(), 2)
	mapAt(t, m, second, second.Base(), 1)
	_, err := m.Bytes(first.Base(), 3*granule)
	require.NoError(t, err)
	m.Unmap(first.Base(), nil)
	first.Free()
	require.NoError(t, m.Write(second.Base(), []byte{1}), "the second does not need the first")
	m.Unmap(second.Base(), nil)
	second.Free()
	_, err = Reserve(1<<60, 0)
	require.Error(t, err)
}
