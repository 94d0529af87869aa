// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"encoding/binary"
	"errors"
	"reflect"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// counterPTX adds 1 to *p in every thread.
const counterPTX = `
.version 7.8
.target sm_75
.address_size 64
.visible .entry count(.param .u64 p)
{
	.reg .b64 %a;
	.reg .b32 %r;
	ld.param.u64 %a, [p];
	atom.global.add.u32 %r, [%a], 1;
	ret;
}
.visible .entry endless(.param .u64 p)
{
	.reg .b64 %a;
	.reg .b32 %r;
	.reg .pred %q;
	ld.param.u64 %a, [p];
again:
	ld.volatile.global.u32 %r, [%a];
	setp.ne.u32 %q, %r, 77;
	@%q bra again;
	ret;
}
.visible .entry grid_barrier(.param .u64 p)
{
	.reg .b64 %a;
	.reg .b32 %r, %n, %t, %one;
	.reg .pred %q, %first;
	ld.param.u64 %a, [p];
	mov.u32 %n, %nctaid.x;
	mov.u32 %t, %tid.x;
	setp.eq.u32 %first, %t, 0;
	@!%first bra wait;
	atom.global.add.u32 %r, [%a], 1;
again:
	ld.volatile.global.u32 %r, [%a];
	setp.lt.u32 %q, %r, %n;
	@%q bra again;
wait:
	bar.sync 0;
	atom.global.add.u32 %r, [%a+4], 1;
	ret;
}
`

func counter(t testing.TB, d *Device) (m *Module, addr uint64) {
	m = loadText(t, d, "counter", counterPTX)
	addr, err := d.Memory().Alloc(64, "counter")
	require.NoError(t, err)
	require.NoError(t, d.Memory().Write(addr, make([]byte, 64)))
	return m, addr
}

func kernel(t testing.TB, m *Module, name string) *Kernel {
	k, err := m.Kernel(name)
	require.NoError(t, err)
	return k
}

func word(t testing.TB, d *Device, addr uint64) uint32 {
	b := make([]byte, 4)
	require.NoError(t, d.Memory().Read(b, addr))
	return binary.LittleEndian.Uint32(b)
}

func TestConcurrentLaunches(t *testing.T) {
	before := runtime.NumGoroutine()
	d := NewDevice(Config{Workers: 4})
	m, addr := counter(t, d)
	k := kernel(t, m, "count")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				l := Launch{Grid: [3]uint32{5, 3, 1}, Block: [3]uint32{40, 1, 1}, Params: pack(addr)}
				if err := k.Launch(&l); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.Equal(t, uint32(8*20*15*40), word(t, d, addr))
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
	d := NewDevice(Config{})
	defer d.Close()
	m, addr := counter(t, d)
	cancel := make(chan struct{})
	time.AfterFunc(10*time.Millisecond, func() { close(cancel) })
	err := kernel(t, m, "endless").Launch(&Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: pack(addr), Cancel: cancel})
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.Canceled, f.Kind)
}

// TestHostWritesWhileRunning ends a kernel by a write from the host, and frees
// the memory that it reads before that: it must stay mapped.
func TestHostWritesWhileRunning(t *testing.T) {
	d := NewDevice(Config{})
	defer d.Close()
	m, _ := counter(t, d)
	const size = 1 << 20 // a mapping of its own, which Free would give back
	addr, err := d.Memory().Alloc(size, "big")
	require.NoError(t, err)
	host, err := d.Memory().Slice(addr, size)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		done <- kernel(t, m, "endless").Launch(&Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: pack(addr)})
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
	d := NewDevice(Config{Workers: 2})
	defer d.Close()
	m, addr := counter(t, d)
	k := kernel(t, m, "grid_barrier")
	l := Launch{Grid: [3]uint32{32, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: pack(addr), Cooperative: true}
	require.NoError(t, k.Launch(&l))
	require.Equal(t, uint32(32), word(t, d, addr))
	require.Equal(t, uint32(32*64), word(t, d, addr+4))

	l.Grid[0] = 1000
	var refused *LaunchError
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
	d := NewDevice(Config{Workers: 2})
	defer d.Close()
	out, err := d.Memory().Alloc(16, "out")
	require.NoError(t, err)
	require.NoError(t, d.Memory().Write(out, make([]byte, 16)))
	k := kernel(t, loadText(t, d, "workspace", workspacePTX), "touch")
	before, _ := d.Memory().Info()
	l := Launch{Grid: [3]uint32{16, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: pack(out), Cooperative: true}
	for range 2 {
		require.NoError(t, k.Launch(&l))
	}
	require.Equal(t, uint32(2*120), word(t, d, out+8), "each grid counts from zero")
	at := uint64(word(t, d, out)) | uint64(word(t, d, out+4))<<32
	_, err = d.Memory().Bytes(at, 4)
	var access *memory.AccessError
	require.ErrorAs(t, err, &access)
	require.Equal(t, "end of touch", access.Nearest.FreeSite)
	after, _ := d.Memory().Info()
	require.Equal(t, before, after)

	l.Cooperative = false
	require.NoError(t, k.Launch(&l))
	require.Zero(t, word(t, d, out)|word(t, d, out+4))
}

func TestLaunchLimits(t *testing.T) {
	d := NewDevice(Config{})
	defer d.Close()
	m, addr := counter(t, d)
	k := kernel(t, m, "count")
	good := Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: pack(addr)}
	tests := []struct {
		name, want string
		spoil      func(l *Launch)
	}{
		{"empty block", "must not be empty", func(l *Launch) { l.Block[1] = 0 }},
		{"empty grid", "must not be empty", func(l *Launch) { l.Grid[2] = 0 }},
		{"block too big", "block of 2048 threads, at most 1024", func(l *Launch) { l.Block = [3]uint32{512, 4, 1} }},
		{"block too deep", "z is at most 64", func(l *Launch) { l.Block = [3]uint32{1, 1, 65} }},
		{"grid too big", "at most 2147483647, 65535, 65535", func(l *Launch) { l.Grid[1] = 65536 }},
		{"shared memory", "100000 bytes of shared memory", func(l *Launch) { l.DynamicShared = 100000 }},
		{"parameters", "0 bytes of parameters, 8 wanted", func(l *Launch) { l.Params = nil }},
	}
	require.NoError(t, k.Launch(&good))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := good
			test.spoil(&l)
			var refused *LaunchError
			require.ErrorAs(t, k.Launch(&l), &refused)
			require.Contains(t, refused.Reason, test.want)
		})
	}
	require.Equal(t, uint32(1), word(t, d, addr))
}

// TestFaultLeavesDeviceUsable launches again after a fault.
func TestFaultLeavesDeviceUsable(t *testing.T) {
	d := NewDevice(Config{})
	defer d.Close()
	m, addr := counter(t, d)
	k := kernel(t, m, "count")
	l := Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: pack(uint64(8))}
	var f *fault.Fault
	require.ErrorAs(t, k.Launch(&l), &f)
	require.Equal(t, fault.IllegalAddress, f.Kind)
	l.Params = pack(addr)
	require.NoError(t, k.Launch(&l))
	require.Equal(t, uint32(256), word(t, d, addr))
}

func TestUnmappedHostRangeIsAFault(t *testing.T) {
	d := NewDevice(Config{})
	defer d.Close()
	m, _ := counter(t, d)
	host, err := syscall.Mmap(-1, 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	base := uint64(reflect.ValueOf(host).Pointer())
	d.Memory().AddHost(uintptr(base), 1<<16, memory.HostPageable)
	l := Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: pack(base)}
	k := kernel(t, m, "count")
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

func TestUnknownKernel(t *testing.T) {
	d := NewDevice(Config{})
	defer d.Close()
	m, _ := counter(t, d)
	_, err := m.Kernel("nobody")
	require.True(t, errors.Is(err, ErrNotFound))
	require.Equal(t, []string{"count", "endless", "grid_barrier"}, m.KernelNames())
}

func BenchmarkLaunch32(b *testing.B) {
	d := NewDevice(Config{})
	defer d.Close()
	m, addr := counter(b, d)
	k := kernel(b, m, "count")
	l := Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: pack(addr)}
	b.ReportAllocs()
	for b.Loop() {
		if err := k.Launch(&l); err != nil {
			b.Fatal(err)
		}
	}
}
