// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"encoding/binary"
	"reflect"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

func TestConcurrentLaunches(t *testing.T) {
	before := runtime.NumGoroutine()
	d := ptxvm.NewDevice(ptxvm.Config{Workers: 4})
	m, addr := vmtest.Counter(t, d)
	k := vmtest.Kernel(t, m, "count")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				l := ptxvm.Launch{Grid: [3]uint32{5, 3, 1}, Block: [3]uint32{40, 1, 1}, Params: vmtest.Pack(addr)}
				if err := k.Launch(&l); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.Equal(t, uint32(8*20*15*40), vmtest.Word(t, d, addr))
	d.Close()
	for range 1000 { // the last helpers may be about to end
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func TestCancel(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m, addr := vmtest.Counter(t, d)
	cancel := make(chan struct{})
	time.AfterFunc(10*time.Millisecond, func() { close(cancel) })
	err := vmtest.Kernel(t, m, "endless").Launch(&ptxvm.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: vmtest.Pack(addr), Cancel: cancel})
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.Canceled, f.Kind)
}

// TestHostWritesWhileRunning ends a kernel by a write from the host, and frees
// the memory that it reads before that: it must stay mapped.
func TestHostWritesWhileRunning(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m, _ := vmtest.Counter(t, d)
	const size = 1 << 20 // a mapping of its own, which Free would give back
	addr, err := d.Memory().Alloc(size, "big")
	require.NoError(t, err)
	host, err := d.Memory().Slice(addr, size)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		done <- vmtest.Kernel(t, m, "endless").Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: vmtest.Pack(addr)})
	}()
	time.Sleep(10 * time.Millisecond)
	select {
	case err := <-done:
		require.FailNow(t, "the kernel ended by itself", "%v", err)
	default:
	}
	release := d.Memory().Hold()
	require.NoError(t, d.Memory().Free(addr, "while running"))
	binary.LittleEndian.PutUint32(host, 77)
	require.NoError(t, <-done)
	release()
	_, err = d.Memory().Bytes(addr, 4)
	var access *memory.AccessError
	require.ErrorAs(t, err, &access)
	require.Equal(t, "while running", access.Nearest.FreeSite)
}

func TestCooperativeGrid(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{Workers: 2})
	defer d.Close()
	m, addr := vmtest.Counter(t, d)
	k := vmtest.Kernel(t, m, "grid_barrier")
	l := ptxvm.Launch{Grid: [3]uint32{32, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: vmtest.Pack(addr), Cooperative: true}
	require.NoError(t, k.Launch(&l))
	require.Equal(t, uint32(32), vmtest.Word(t, d, addr))
	require.Equal(t, uint32(32*64), vmtest.Word(t, d, addr+4))

	l.Grid[0] = 1000
	var refused *ptxvm.LaunchError
	require.ErrorAs(t, k.Launch(&l), &refused)
	require.Contains(t, refused.Error(), "1000 blocks, at most 128 can be resident")
}

const workspacePTX = `
.version 7.0
.target sm_75
.address_size 64
.visible .entry touch(.param .u64 p)
{
	.reg .b32 %lo, %hi, %n;
	.reg .b64 %at, %out;
	.reg .pred %none;
	mov.u32 %hi, %envreg1;
	mov.u32 %lo, %envreg2;
	mov.b64 %at, {%lo, %hi};
	ld.param.u64 %out, [p];
	st.global.u64 [%out], %at;
	setp.eq.u64 %none, %at, 0;
	@%none bra END;
	atom.global.add.u32 %n, [%at+4], 1;
	red.global.add.u32 [%out+8], %n;
END:
	ret;
}`

func TestCooperativeGridHasAWorkspace(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{Workers: 2})
	defer d.Close()
	out, err := d.Memory().Alloc(16, "out")
	require.NoError(t, err)
	require.NoError(t, d.Memory().Write(out, make([]byte, 16)))
	k := vmtest.Kernel(t, vmtest.Load(t, d, "workspace", workspacePTX), "touch")
	before, _ := d.Memory().Info()
	l := ptxvm.Launch{Grid: [3]uint32{16, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: vmtest.Pack(out), Cooperative: true}
	for range 2 {
		require.NoError(t, k.Launch(&l))
	}
	require.Equal(t, uint32(2*120), vmtest.Word(t, d, out+8), "each grid counts from zero")
	at := uint64(vmtest.Word(t, d, out)) | uint64(vmtest.Word(t, d, out+4))<<32
	_, err = d.Memory().Bytes(at, 4)
	var access *memory.AccessError
	require.ErrorAs(t, err, &access)
	require.Equal(t, "end of touch", access.Nearest.FreeSite)
	after, _ := d.Memory().Info()
	require.Equal(t, before, after)

	l.Cooperative = false
	require.NoError(t, k.Launch(&l))
	require.Zero(t, vmtest.Word(t, d, out)|vmtest.Word(t, d, out+4))
}

func TestLaunchLimits(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m, addr := vmtest.Counter(t, d)
	k := vmtest.Kernel(t, m, "count")
	good := ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: vmtest.Pack(addr)}
	tests := []struct {
		name, want string
		spoil      func(l *ptxvm.Launch)
	}{
		{"empty block", "must not be empty", func(l *ptxvm.Launch) { l.Block[1] = 0 }},
		{"empty grid", "must not be empty", func(l *ptxvm.Launch) { l.Grid[2] = 0 }},
		{"block too big", "block of 2048 threads, at most 1024", func(l *ptxvm.Launch) { l.Block = [3]uint32{512, 4, 1} }},
		{"block too deep", "z is at most 64", func(l *ptxvm.Launch) { l.Block = [3]uint32{1, 1, 65} }},
		{"grid too big", "at most 2147483647, 65535, 65535", func(l *ptxvm.Launch) { l.Grid[1] = 65536 }},
		{"shared memory", "100000 bytes of shared memory", func(l *ptxvm.Launch) { l.DynamicShared = 100000 }},
		{"parameters", "0 bytes of parameters, the kernel has 8", func(l *ptxvm.Launch) { l.Params = nil }},
	}
	require.NoError(t, k.Launch(&good))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := good
			test.spoil(&l)
			var refused *ptxvm.LaunchError
			require.ErrorAs(t, k.Launch(&l), &refused)
			require.Contains(t, refused.Reason, test.want)
		})
	}
	require.Equal(t, uint32(1), vmtest.Word(t, d, addr))
}

// TestFaultLeavesDeviceUsable launches again after a fault.
func TestFaultLeavesDeviceUsable(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m, addr := vmtest.Counter(t, d)
	k := vmtest.Kernel(t, m, "count")
	l := ptxvm.Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: vmtest.Pack(uint64(8))}
	var f *fault.Fault
	require.ErrorAs(t, k.Launch(&l), &f)
	require.Equal(t, fault.IllegalAddress, f.Kind)
	l.Params = vmtest.Pack(addr)
	require.NoError(t, k.Launch(&l))
	require.Equal(t, uint32(256), vmtest.Word(t, d, addr))
}

func TestUnmappedHostRangeIsAFault(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m, _ := vmtest.Counter(t, d)
	host, err := syscall.Mmap(-1, 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	base := uint64(reflect.ValueOf(host).Pointer())
	d.Memory().AddHost(uintptr(base), 1<<16, memory.HostPageable)
	l := ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: vmtest.Pack(base)}
	k := vmtest.Kernel(t, m, "count")
	require.NoError(t, k.Launch(&l))
	require.Equal(t, byte(32), host[0])
	require.NoError(t, syscall.Munmap(host))
	var f *fault.Fault
	require.ErrorAs(t, k.Launch(&l), &f)
	require.Equal(t, fault.IllegalAddress, f.Kind)
	require.Contains(t, f.Error(), "is not mapped")
	d.Memory().RemoveHost(uintptr(base), 1<<16)
	require.ErrorAs(t, k.Launch(&l), &f)
	require.NotContains(t, f.Error(), "is not mapped")
}

func TestStoreIntoReadOnlyMemoryIsAFault(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m, _ := vmtest.Counter(t, d)
	host, err := syscall.Mmap(-1, 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(host)) }()
	base := uint64(reflect.ValueOf(host).Pointer())
	d.Memory().AddReadOnly(uintptr(base), 1<<16, memory.HostPageable)
	l := ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: vmtest.Pack(base)}
	k := vmtest.Kernel(t, m, "count") // an atomic addition
	var f *fault.Fault
	require.ErrorAs(t, k.Launch(&l), &f)
	require.Equal(t, fault.IllegalAddress, f.Kind)
	require.Contains(t, f.Error(), "at offset 0 of read-only pageable host memory of 65536 bytes")
	require.Contains(t, f.Error(), "a store into read-only memory")
	require.Zero(t, host[0])
	d.Memory().AddHost(uintptr(base), 1<<16, memory.HostPageable)
	require.NoError(t, k.Launch(&l))
	require.Equal(t, byte(32), host[0])
	d.Memory().RemoveHost(uintptr(base), 1<<16)
	require.ErrorAs(t, k.Launch(&l), &f)
	require.Equal(t, byte(32), host[0])
}

func TestUnknownKernel(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m, _ := vmtest.Counter(t, d)
	_, err := m.Kernel("nobody")
	require.ErrorIs(t, err, ptxvm.ErrNotFound)
	require.Equal(t, []string{"count", "endless", "grid_barrier"}, m.KernelNames())
}

func BenchmarkLaunch32(b *testing.B) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	m, addr := vmtest.Counter(b, d)
	k := vmtest.Kernel(b, m, "count")
	l := ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: vmtest.Pack(addr)}
	b.ReportAllocs()
	for b.Loop() {
		if err := k.Launch(&l); err != nil {
			b.Fatal(err)
		}
	}
}
