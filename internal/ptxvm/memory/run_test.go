// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

const mapped = memory.MappingGranularity

// mapFresh maps n fresh granules at addr.
func mapFresh(t *testing.T, m *memory.Memory, r *memory.Reservation, addr, n uint64) {
	t.Helper()
	p, err := m.Create(n * mapped)
	require.NoError(t, err)
	require.NoError(t, m.Map(r, addr, p, "a test"))
	m.SetAccess(addr, n*mapped, m, true)
	m.Release(p)
}

// A kernel that runs while its memory is unmapped and other memory is mapped in
// its place accesses the new memory, as the host does.
func TestUnmapWhileRunning(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	mod, _ := vmtest.Counter(t, d)
	m := d.Memory()
	r, err := memory.Reserve(2*mapped, 0)
	require.NoError(t, err)
	addr := r.Base()
	mapFresh(t, m, r, addr, 2)
	done := make(chan error, 1)
	go func() {
		done <- vmtest.Kernel(t, mod, "endless").Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: vmtest.Pack(addr)})
	}()
	time.Sleep(10 * time.Millisecond)
	release := m.Hold()
	m.Unmap(addr, nil)
	_, err = m.Bytes(addr, 4)
	require.Error(t, err)
	mapFresh(t, m, r, addr, 1) // the second granule of the old mapping stays to be hidden
	host, err := m.Slice(addr, 4)
	require.NoError(t, err)
	binary.LittleEndian.PutUint32(host, 77)
	require.NoError(t, <-done)
	release()
	require.EqualValues(t, 77, vmtest.Word(t, d, addr), "hiding the old mapping left the new one")
	m.Unmap(addr, nil)
	r.Free()
}

func TestMappingHammer(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	mod, _ := vmtest.Counter(t, d)
	k := vmtest.Kernel(t, mod, "count")
	m := d.Memory()
	before, _ := m.Info()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 10 {
				r, err := memory.Reserve(2*mapped, 0)
				if err != nil {
					t.Error(err)
					return
				}
				p, err := m.Create(mapped)
				if err == nil {
					err = m.Map(r, r.Base()+mapped, p, nil)
				}
				if err != nil {
					t.Error(err)
					return
				}
				m.SetAccess(r.Base()+mapped, mapped, m, true)
				m.Release(p)
				if err := k.Launch(&ptxvm.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: vmtest.Pack(r.Base() + mapped)}); err != nil {
					t.Error(err)
				}
				m.Unmap(r.Base()+mapped, nil)
				r.Free()
			}
		})
	}
	group.Wait()
	after, _ := m.Info()
	require.Equal(t, before, after)
}
