// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"encoding/binary"
	"math"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// kernelsPTX has saxpy(float a, const float *x, float *y, int n) and
// poke(unsigned *p), which writes 7 to *p.
const kernelsPTX = `.version 7.0
.target sm_75
.address_size 64
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .f32 %f<5>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<8>;
	ld.param.f32 %f1, [a];
	ld.param.u64 %rd1, [x];
	ld.param.u64 %rd2, [y];
	ld.param.u32 %r2, [n];
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.s32 %r1, %r3, %r4, %r5;
	setp.ge.s32 %p1, %r1, %r2;
	@%p1 bra done;
	mul.wide.s32 %rd3, %r1, 4;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
	ld.global.f32 %f2, [%rd4];
	ld.global.f32 %f3, [%rd5];
	fma.rn.f32 %f4, %f1, %f2, %f3;
	st.global.f32 [%rd5], %f4;
done:
	ret;
}
.visible .entry poke(.param .u64 p)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, 7;
	st.global.u32 [%rd1], %r1;
	ret;
}
`

// openSimulated returns a context of a fresh simulated driver. When the test
// ends, nothing may be open any more.
func openSimulated(t *testing.T, o Options) *Context {
	t.Helper()
	o.Driver = "sim"
	d, err := Open(o)
	require.NoError(t, err)
	dev, err := d.Device(0)
	require.NoError(t, err)
	c, err := dev.Context()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Empty(t, d.Live())
		require.NoError(t, d.Close())
	})
	return c
}

func allocate(t *testing.T, mr MemoryResource, size uint64, s *Stream) *Buffer {
	t.Helper()
	b, err := mr.Allocate(size, s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func device(t *testing.T, c *Context) *DeviceMemoryResource {
	t.Helper()
	mr, err := c.dev.DefaultMemoryResource()
	require.NoError(t, err)
	return mr
}

func kernel(t *testing.T, c *Context, name string) *Kernel {
	t.Helper()
	code, err := ObjectCodeFrom(PTX, []byte(kernelsPTX))
	require.NoError(t, err)
	k, err := code.Kernel(c.dev, name)
	require.NoError(t, err)
	require.NoError(t, code.Close(), "the kernel keeps the module")
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	return k
}

func floats(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.NativeEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func one() LaunchConfig { return LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{1}} }

func TestSaxpy(t *testing.T) {
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	x, y := allocate(t, device(t, c), 12, s), allocate(t, device(t, c), 12, s)
	require.NoError(t, x.CopyFromHost(floats(1, 2, 3), s))
	require.NoError(t, y.Fill(0, 4, s))
	cfg := LaunchConfig{Grid: [3]uint32{2}, Block: [3]uint32{2}}
	require.NoError(t, Launch(s, cfg, kernel(t, c, "saxpy"), 2.0, x, y, 3))
	got := make([]byte, 12)
	require.NoError(t, y.CopyToHost(got, s))
	require.Equal(t, floats(2, 4, 6), got)
}

func TestMemoryOnEitherSide(t *testing.T) {
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	pinned, err := NewPinnedMemoryResource(c.dev)
	require.NoError(t, err)
	managed, err := NewManagedMemoryResource(c.dev)
	require.NoError(t, err)
	poke := kernel(t, c, "poke")
	for _, mr := range []MemoryResource{pinned, managed} {
		b := allocate(t, mr, 8, s)
		clear(b.Bytes())
		require.NoError(t, Launch(s, one(), poke, b))
		require.NoError(t, s.Synchronize())
		require.Equal(t, []byte{7, 0, 0, 0, 0, 0, 0, 0}, b.Bytes(), "%v memory", mr.Kind())

		info, err := c.PointerInfo(b.Ptr() + 4)
		require.NoError(t, err)
		require.Equal(t, mr.Kind(), info.Kind)
		require.Zero(t, info.Ordinal)
	}
	b := allocate(t, device(t, c), 8, s)
	require.Nil(t, b.Bytes())
	info, err := c.PointerInfo(b.Ptr() + 4)
	require.NoError(t, err)
	require.Equal(t, DeviceMemory, info.Kind)
	require.Equal(t, b.Ptr(), info.Base)
	require.EqualValues(t, 8, info.Size)
	id, err := c.BufferID(b.Ptr() + 4)
	require.NoError(t, err)
	require.Equal(t, info.BufferID, id)
	require.NotZero(t, id)
	id, err = c.BufferID(b.Ptr() + 8)
	require.NoError(t, err)
	require.Zero(t, id)
	var local byte
	info, err = c.PointerInfo(uint64(addressOf(&local)))
	require.NoError(t, err)
	require.Equal(t, HostMemory, info.Kind)
	require.Equal(t, -1, info.Ordinal)
}

func TestEventsOrderStreams(t *testing.T) {
	c := openSimulated(t, Options{})
	a, b := newTestStream(t, c, StreamOptions{}), newTestStream(t, c, StreamOptions{})
	start, end := newTestEvent(t, c, EventOptions{Timing: true}), newTestEvent(t, c, EventOptions{Timing: true})
	buf := allocate(t, device(t, c), 4, a)
	require.NoError(t, a.Record(start))
	require.NoError(t, Launch(a, one(), kernel(t, c, "poke"), buf))
	require.NoError(t, a.Record(end))
	require.NoError(t, b.Wait(end))
	got := make([]byte, 4)
	require.NoError(t, buf.CopyToHost(got, b))
	require.Equal(t, []byte{7, 0, 0, 0}, got)
	done, err := end.Query()
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, end.Synchronize())
	ms, err := end.ElapsedMS(start)
	require.NoError(t, err)
	require.GreaterOrEqual(t, ms, 0.0)
}

func TestFaultIsSticky(t *testing.T) {
	d, err := Open(Options{Driver: "sim"})
	require.NoError(t, err)
	dev, err := d.Device(0)
	require.NoError(t, err)
	c, err := dev.Context()
	require.NoError(t, err)
	s := newTestStream(t, c, StreamOptions{})
	require.NoError(t, Launch(s, one(), kernel(t, c, "poke"), 0x10))
	err = s.Synchronize()
	require.ErrorIs(t, err, ErrorIllegalAddress)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Result.Sticky())
	require.Contains(t, e.Detail, "poke", "the report names the kernel")
	_, err = c.NewEvent(EventOptions{})
	require.ErrorIs(t, err, ErrorIllegalAddress, "every later call fails too")
	t.Cleanup(func() { require.NoError(t, d.Close()) })
}

func TestHostMemoryAsAnArgument(t *testing.T) {
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	var value uint32
	var pin runtime.Pinner
	pin.Pin(&value)
	defer pin.Unpin()
	p := addressOf(&value)
	c.drv.AllowHost(p, 4, false)
	defer c.drv.DisallowHost(p, 4, false)
	host := c.WrapBuffer(BufferInfo{Ptr: uint64(p), Size: 4, Kind: HostMemory})
	require.NoError(t, Launch(s, one(), kernel(t, c, "poke"), host))
	require.NoError(t, s.Synchronize())
	require.EqualValues(t, 7, value)

	old := openSimulated(t, Options{Sim: "pageable=0"})
	require.ErrorContains(t, Launch(newTestStream(t, old, StreamOptions{}), one(), kernel(t, old, "poke"), host), "cannot be pageable host memory")
}

func TestHostFunctions(t *testing.T) {
	var sum atomic.Uint64
	c := openSimulated(t, Options{CallHost: func(fn, userData uintptr) { sum.Add(uint64(fn * userData)) }})
	s := newTestStream(t, c, StreamOptions{})
	require.NoError(t, s.LaunchHostFunc(6, 7))
	require.NoError(t, s.Synchronize())
	require.EqualValues(t, 42, sum.Load())
}

func TestTwoDevices(t *testing.T) {
	c := openSimulated(t, Options{Sim: "devices=2"})
	require.Equal(t, 2, c.drv.DeviceCount())
	second, err := c.drv.Device(1)
	require.NoError(t, err)
	other, err := second.Context()
	require.NoError(t, err)
	s, so := newTestStream(t, c, StreamOptions{}), newTestStream(t, other, StreamOptions{})
	a, b := allocate(t, device(t, c), 4, s), allocate(t, device(t, other), 4, so)
	require.NoError(t, a.CopyFromHost(floats(5), s))
	require.NoError(t, b.CopyFrom(a, so))
	got := make([]byte, 4)
	require.NoError(t, b.CopyToHost(got, so))
	require.Equal(t, floats(5), got)
	u0, err := c.dev.UUID()
	require.NoError(t, err)
	u1, err := second.UUID()
	require.NoError(t, err)
	require.NotEqual(t, u0, u1)
	require.Len(t, u0.String(), 36)
}

func TestDeviceFacts(t *testing.T) {
	c := openSimulated(t, Options{Sim: "cc=8.6,memory=1GiB"})
	dev := c.dev
	require.Equal(t, "sim", c.drv.Name())
	require.Empty(t, c.drv.Notice())
	require.GreaterOrEqual(t, c.drv.Version(), 12040)
	major, minor, err := dev.ComputeCapability()
	require.NoError(t, err)
	require.Equal(t, [2]int{8, 6}, [2]int{major, minor})
	total, err := dev.TotalMemory()
	require.NoError(t, err)
	require.EqualValues(t, 1<<30, total)
	free, total, err := dev.MemInfo()
	require.NoError(t, err)
	require.LessOrEqual(t, free, total)
	name, err := dev.Name()
	require.NoError(t, err)
	require.NotEmpty(t, name)
	bus, err := dev.PCIBusID()
	require.NoError(t, err)
	require.NotEmpty(t, bus)
	can, err := dev.CanAccessPeer(dev)
	require.NoError(t, err)
	require.False(t, can, "a device is not its own peer")
	require.NoError(t, dev.Synchronize())
	for name, a := range AttributeNames() {
		_, err := dev.Attribute(a)
		if err != nil {
			require.ErrorIs(t, err, ErrorInvalidValue, name)
		}
	}
	require.Equal(t, MultiprocessorCount, AttributeNames()["multiprocessor_count"])
	least, greatest, err := c.StreamPriorityRange()
	require.NoError(t, err)
	require.LessOrEqual(t, greatest, least)
}

func TestStreamFacts(t *testing.T) {
	c := openSimulated(t, Options{})
	_, greatest, err := c.StreamPriorityRange()
	require.NoError(t, err)
	s := newTestStream(t, c, StreamOptions{Priority: greatest - 100, Blocking: true})
	p, err := s.Priority()
	require.NoError(t, err)
	require.Equal(t, greatest, p, "clamped")
	blocking, err := s.IsBlocking()
	require.NoError(t, err)
	require.True(t, blocking)
	other := newTestStream(t, c, StreamOptions{})
	blocking, err = other.IsBlocking()
	require.NoError(t, err)
	require.False(t, blocking)
	a, err := s.ID()
	require.NoError(t, err)
	b, err := other.ID()
	require.NoError(t, err)
	require.NotEqual(t, a, b)
}

func TestPoolOfItsOwn(t *testing.T) {
	c := openSimulated(t, Options{})
	s := newTestStream(t, c, StreamOptions{})
	mr, err := NewDeviceMemoryResource(c.dev, PoolOptions{ReleaseThreshold: new(uint64(1 << 20))})
	require.NoError(t, err)
	threshold, err := mr.ReleaseThreshold()
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, threshold)
	b := allocate(t, mr, 1000, s)
	st, err := mr.Statistics()
	require.NoError(t, err)
	require.GreaterOrEqual(t, st.Used, uint64(1000))
	require.GreaterOrEqual(t, st.Reserved, st.Used)
	require.NoError(t, mr.Close())
	require.NoError(t, b.Fill(1, 1, s), "what was allocated lives on")
	require.NoError(t, b.Close())
	require.NoError(t, s.Synchronize())
}

func TestOutOfMemory(t *testing.T) {
	c := openSimulated(t, Options{Sim: "memory=64MiB"})
	s := newTestStream(t, c, StreamOptions{})
	_, err := device(t, c).Allocate(1<<40, s)
	require.ErrorIs(t, err, ErrorOutOfMemory)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.EqualValues(t, 1<<40, e.Requested)
}

func TestKernelFacts(t *testing.T) {
	c := openSimulated(t, Options{})
	k := kernel(t, c, "saxpy")
	n, err := k.MaxThreadsPerBlock()
	require.NoError(t, err)
	require.Equal(t, 1024, n)
	for name, a := range KernelAttributeNames() {
		_, err := k.Attribute(a)
		require.NoError(t, err, name)
	}
	blocks, err := k.MaxActiveBlocks(256, 0)
	require.NoError(t, err)
	require.Positive(t, blocks)
	require.NoError(t, k.SetAttribute(KernelMaxDynamicSharedSize, 1024))
	_, err = k.MaxActiveBlocks(0, 0)
	require.EqualError(t, err, "block size must be at least 1 and fit the device, got 0")
	require.Error(t, k.SetAttribute(KernelMaxDynamicSharedSize, 1<<40))
	names, err := k.Module().KernelNames()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"saxpy", "poke"}, names)
}

func TestBadPTX(t *testing.T) {
	c := openSimulated(t, Options{})
	code, err := ObjectCodeFrom(PTX, []byte(".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry f() {\n\tfrobnicate.u32;\n}\n"))
	require.NoError(t, err)
	_, err = code.Load(c.dev)
	var bad *PTXError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, 5, bad.Line)
	require.Equal(t, "frobnicate.u32;", bad.Source)
}

func TestRawCalls(t *testing.T) {
	c := openSimulated(t, Options{})
	d := c.drv
	s := newTestStream(t, c, StreamOptions{})
	e := newTestEvent(t, c, EventOptions{})
	mr := device(t, c)
	var ptr uint64
	require.NoError(t, c.Do(func() error {
		require.Zero(t, d.RawMemAllocFromPoolAsync(&ptr, 64, mr.PoolHandle(), s.Handle()))
		require.Zero(t, d.RawMemcpyAsync(ptr, ptr+32, 16, s.Handle()))
		require.Zero(t, d.RawEventRecord(e.Handle(), s.Handle()))
		require.Zero(t, d.RawStreamWaitEvent(s.Handle(), e.Handle(), 0))
		status := int32(-1)
		require.Zero(t, d.RawStreamIsCapturing(s.Handle(), &status))
		require.Zero(t, status)
		mode := int32(CaptureRelaxed)
		require.Zero(t, d.RawThreadExchangeStreamCaptureMode(&mode))
		require.EqualValues(t, CaptureGlobal, mode)
		require.Zero(t, d.RawThreadExchangeStreamCaptureMode(&mode))
		return nil
	}))
	require.Zero(t, d.RawMemFreeAsync(ptr, s.Handle()))
	require.NoError(t, s.Synchronize())
	require.NotZero(t, d.RawGraphLaunch(0xBAD0, s.Handle()))
}

func TestCompileAndRun(t *testing.T) {
	c := openSimulated(t, Options{NVRTCPaths: nvrtcPaths(t)})
	s := newTestStream(t, c, StreamOptions{})
	p, err := c.drv.NewProgram(`
struct Line { float slope, shift; };
template <class T> __global__ void apply(Line l, const T *x, T *y, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) y[i] = l.slope * x[i] + l.shift;
}
__device__ int counter = 3;`, CPlusPlus, ProgramOptions{NameExpressions: []string{"apply<float>", "&counter"}})
	require.NoError(t, err)
	code, err := p.Compile(c.dev, "")
	require.NoError(t, err)
	require.Equal(t, PTX, code.Kind)
	k, err := code.Kernel(c.dev, "apply<float>")
	require.NoError(t, err)
	require.Equal(t, "(b8[8], u64, u64, u32)", k.Signature().String())
	x, y := allocate(t, device(t, c), 12, s), allocate(t, device(t, c), 12, s)
	require.NoError(t, x.CopyFromHost(floats(1, 2, 3), s))
	cfg := LaunchConfig{Grid: [3]uint32{1}, Block: [3]uint32{32}}
	require.NoError(t, Launch(s, cfg, k, floats(2, 0.5), x, y, 3))
	got := make([]byte, 12)
	require.NoError(t, y.CopyToHost(got, s))
	require.Equal(t, floats(2.5, 4.5, 6.5), got)

	v, err := k.Module().Global("&counter")
	require.NoError(t, err)
	require.EqualValues(t, 4, v.Size)
	require.False(t, v.Constant)
	counter := c.WrapBuffer(BufferInfo{Ptr: v.Ptr, Size: v.Size})
	require.NoError(t, counter.CopyToHost(got[:4], s))
	require.Equal(t, []byte{3, 0, 0, 0}, got[:4])
	_, err = k.Module().Global("missing")
	require.ErrorIs(t, err, ErrorNotFound)
	require.NoError(t, code.Close())
	require.NoError(t, k.Close())
}
