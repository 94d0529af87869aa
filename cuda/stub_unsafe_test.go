// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// stub is a driver that does no work, for tests of what this package does
// around the driver: it knows which handles are alive and which context each
// thread has, and a test can watch, fail or block any call. What it has no
// method for succeeds, as driver.Base does.
type stub struct {
	driver.Base

	// on sees every call before it happens; a code other than success fails it.
	on func(call string) driver.CUresult

	mu       sync.Mutex
	next     uintptr                            // guarded by mu
	alive    map[uintptr]string                 // guarded by mu; handle to kind
	current  map[int][]driver.CUcontext         // guarded by mu; by thread
	mode     map[int]driver.CUstreamCaptureMode // guarded by mu; by thread
	status   map[driver.CUstream]driver.CUstreamCaptureStatus
	calls    []string // guarded by mu
	attrs    map[driver.CUdevice_attribute]int32
	ready    bool // what queries answer
	report   string
	priority int32           // of the latest stream
	freedOn  driver.CUstream // of the latest free
	noPeers  bool            // the devices cannot access each other's memory
}

const stubContext driver.CUcontext = 0xC0

func newStub() *stub {
	s := &stub{
		next: 0x1000, alive: map[uintptr]string{}, current: map[int][]driver.CUcontext{},
		mode:   map[int]driver.CUstreamCaptureMode{},
		status: map[driver.CUstream]driver.CUstreamCaptureStatus{},
		attrs: map[driver.CUdevice_attribute]int32{
			driver.CUdevice_attribute(MaxThreadsPerBlock): 1024,
			driver.CUdevice_attribute(MaxBlockDimX):       1024, driver.CUdevice_attribute(MaxBlockDimY): 1024, driver.CUdevice_attribute(MaxBlockDimZ): 64,
			driver.CUdevice_attribute(MaxGridDimX): 1<<31 - 1, driver.CUdevice_attribute(MaxGridDimY): 65535, driver.CUdevice_attribute(MaxGridDimZ): 65535,
			driver.CUdevice_attribute(MaxSharedMemoryPerBlock): 49152, driver.CUdevice_attribute(MaxSharedMemoryPerBlockOptin): 65536,
			driver.CUdevice_attribute(ComputeCapabilityMajor): 7, driver.CUdevice_attribute(ComputeCapabilityMinor): 5,
			driver.CUdevice_attribute(CooperativeLaunch): 1, driver.CUdevice_attribute(ManagedMemory): 1,
			driver.CUdevice_attribute(HostRegisterSupported): 1, driver.CUdevice_attribute(ReadOnlyHostRegisterSupported): 1,
			driver.CUdevice_attribute(ConcurrentManagedAccess): 1, driver.CUdevice_attribute(HostMemoryPoolsSupported): 1,
		},
		ready: true,
	}
	s.Answer = s.answer
	return s
}

// answer is for calls without a method here. Of these, what is about devices
// or names its context needs no current one.
func (s *stub) answer(call string) driver.CUresult {
	if call == "cuInit" || call == "cuCtxGetId" || strings.HasPrefix(call, "cuDevice") {
		return s.call(call)
	}
	return s.needContext(call)
}

// CuStreamGetCtx needs no current context.
func (s *stub) CuStreamGetCtx(driver.CUstream) (driver.CUcontext, driver.CUresult) {
	return stubContext, s.call("cuStreamGetCtx")
}

// openStub returns a driver over a stub and its context.
func openStub(t *testing.T) (*stub, *Context) {
	t.Helper()
	s := newStub()
	d, err := newDriver(s)
	require.NoError(t, err)
	dev, err := d.Device(0)
	require.NoError(t, err)
	c, err := dev.Context()
	require.NoError(t, err)
	s.calls = nil
	return s, c
}

// call notes a call and returns the code that the test wants from it.
func (s *stub) call(name string) driver.CUresult {
	s.mu.Lock()
	s.calls = append(s.calls, name)
	on := s.on
	s.mu.Unlock()
	if on == nil {
		return driver.CUDA_SUCCESS
	}
	return on(name)
}

// make creates a handle of a kind.
func (s *stub) make(call, kind string) (uintptr, driver.CUresult) {
	if r := s.call(call); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next += 16
	s.alive[s.next] = kind
	return s.next, driver.CUDA_SUCCESS
}

// destroy ends a handle, which must be alive and of the kind.
func (s *stub) destroy(call, kind string, h uintptr) driver.CUresult {
	if r := s.call(call); r != driver.CUDA_SUCCESS {
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive[h] != kind {
		panic(call + " of a dead handle")
	}
	delete(s.alive, h)
	return driver.CUDA_SUCCESS
}

// needContext is call for calls that need a current context.
func (s *stub) needContext(name string) driver.CUresult {
	if r := s.call(name); r != driver.CUDA_SUCCESS {
		return r
	}
	if c, _ := s.currentContext(); c != stubContext && c != stubContext+1 { // of device 0 or 1
		panic(name + " without the context")
	}
	return driver.CUDA_SUCCESS
}

func (s *stub) currentContext() (driver.CUcontext, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stack := s.current[syscall.Gettid()]
	if len(stack) == 0 {
		return 0, 0
	}
	return stack[len(stack)-1], len(stack)
}

func (s *stub) living() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.alive)
}

func (s *stub) count(call string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c == call {
			n++
		}
	}
	return n
}

func (s *stub) setStatus(stream *Stream, st driver.CUstreamCaptureStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status[stream.h] = st
}

func (s *stub) ask(call string) driver.CUresult {
	r := s.call(call)
	if r == driver.CUDA_SUCCESS && !s.ready {
		return driver.CUDA_ERROR_NOT_READY
	}
	return r
}

func (s *stub) Name() string                        { return "stub" }
func (s *stub) EntryPoint(string) uintptr           { return 0 }
func (s *stub) AllowHost(uintptr, uint64, bool)     { s.call("AllowHost") }
func (s *stub) DisallowHost(uintptr, uint64, bool)  { s.call("DisallowHost") }
func (s *stub) FaultReport(driver.CUcontext) string { return s.report }
func (s *stub) Close() error                        { s.call("Close"); return nil }
func (s *stub) CuDriverGetVersion() (int32, driver.CUresult) {
	return 13000, s.call("cuDriverGetVersion")
}
func (s *stub) CuDeviceGetCount() (int32, driver.CUresult) { return 2, s.call("cuDeviceGetCount") }
func (s *stub) CuDeviceGet(o int32) (driver.CUdevice, driver.CUresult) {
	return driver.CUdevice(o), s.call("cuDeviceGet")
}

func (s *stub) CuDeviceGetAttribute(a driver.CUdevice_attribute, _ driver.CUdevice) (int32, driver.CUresult) {
	return s.attrs[a], s.call("cuDeviceGetAttribute")
}

func (s *stub) CuDevicePrimaryCtxRetain(d driver.CUdevice) (driver.CUcontext, driver.CUresult) {
	return stubContext + driver.CUcontext(d), s.call("cuDevicePrimaryCtxRetain")
}

func (s *stub) CuCtxGetCurrent() (driver.CUcontext, driver.CUresult) {
	if r := s.call("cuCtxGetCurrent"); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	c, _ := s.currentContext()
	return c, driver.CUDA_SUCCESS
}

func (s *stub) CuCtxPushCurrent(c driver.CUcontext) driver.CUresult {
	if r := s.call("cuCtxPushCurrent"); r != driver.CUDA_SUCCESS {
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current[syscall.Gettid()] = append(s.current[syscall.Gettid()], c)
	return driver.CUDA_SUCCESS
}

func (s *stub) CuCtxPopCurrent() (driver.CUcontext, driver.CUresult) {
	s.call("cuCtxPopCurrent")
	s.mu.Lock()
	defer s.mu.Unlock()
	stack := s.current[syscall.Gettid()]
	s.current[syscall.Gettid()] = stack[:len(stack)-1]
	return stack[len(stack)-1], driver.CUDA_SUCCESS
}

func (s *stub) CuMemGetInfo() (free, total uint64, r driver.CUresult) {
	return 1, 2, s.needContext("cuMemGetInfo")
}

func (s *stub) CuThreadExchangeStreamCaptureMode(m driver.CUstreamCaptureMode) (driver.CUstreamCaptureMode, driver.CUresult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.mode[syscall.Gettid()]
	s.mode[syscall.Gettid()] = m
	return old, driver.CUDA_SUCCESS
}

func (s *stub) CuStreamCreateWithPriority(_ uint32, priority int32) (driver.CUstream, driver.CUresult) {
	s.priority = priority
	if r := s.needContext("cuStreamCreateWithPriority.context"); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	h, r := s.make("cuStreamCreateWithPriority", "stream")
	return driver.CUstream(h), r
}

func (s *stub) CuStreamDestroy(h driver.CUstream) driver.CUresult {
	return s.destroy("cuStreamDestroy", "stream", uintptr(h))
}

func (s *stub) CuStreamQuery(driver.CUstream) driver.CUresult { return s.ask("cuStreamQuery") }
func (s *stub) CuStreamIsCapturing(h driver.CUstream) (driver.CUstreamCaptureStatus, driver.CUresult) {
	if r := s.call("cuStreamIsCapturing"); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status[h], driver.CUDA_SUCCESS
}

func (s *stub) CuStreamBeginCapture(h driver.CUstream, _ driver.CUstreamCaptureMode) driver.CUresult {
	r := s.call("cuStreamBeginCapture")
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == driver.CUDA_SUCCESS {
		s.status[h] = driver.CU_STREAM_CAPTURE_STATUS_ACTIVE
	}
	return r
}

func (s *stub) CuStreamEndCapture(h driver.CUstream) (driver.CUgraph, driver.CUresult) {
	r := s.call("cuStreamEndCapture")
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.status, h)
	return 0x6000, r
}

func (s *stub) CuEventCreate(uint32) (driver.CUevent, driver.CUresult) {
	h, r := s.make("cuEventCreate", "event")
	return driver.CUevent(h), r
}

func (s *stub) CuEventDestroy(e driver.CUevent) driver.CUresult {
	return s.destroy("cuEventDestroy", "event", uintptr(e))
}

func (s *stub) CuEventQuery(driver.CUevent) driver.CUresult { return s.ask("cuEventQuery") }
func (s *stub) CuEventElapsedTime(driver.CUevent, driver.CUevent) (float32, driver.CUresult) {
	return 1.5, s.call("cuEventElapsedTime")
}

func (s *stub) CuDeviceGetDefaultMemPool(driver.CUdevice) (driver.CUmemoryPool, driver.CUresult) {
	return 0x5000, s.call("cuDeviceGetDefaultMemPool")
}

func (s *stub) CuMemPoolCreate(*driver.CUmemPoolProps) (driver.CUmemoryPool, driver.CUresult) {
	h, r := s.make("cuMemPoolCreate", "pool")
	return driver.CUmemoryPool(h), r
}

func (s *stub) CuMemPoolDestroy(p driver.CUmemoryPool) driver.CUresult {
	return s.destroy("cuMemPoolDestroy", "pool", uintptr(p))
}

func (s *stub) CuMemAllocFromPoolAsync(uint64, driver.CUmemoryPool, driver.CUstream) (driver.CUdeviceptr, driver.CUresult) {
	h, r := s.make("cuMemAllocFromPoolAsync", "memory")
	return driver.CUdeviceptr(h), r
}

func (s *stub) CuMemFreeAsync(p driver.CUdeviceptr, h driver.CUstream) driver.CUresult {
	s.mu.Lock()
	kind := s.alive[uintptr(h)]
	s.mu.Unlock()
	if s.freedOn = h; h != driver.CU_STREAM_LEGACY && kind != "stream" {
		panic("free on a dead stream")
	}
	return s.destroy("cuMemFreeAsync", "memory", uintptr(p))
}

func (s *stub) CuMemHostAlloc(uint64, uint32) (uintptr, driver.CUresult) {
	return s.make("cuMemHostAlloc", "pinned")
}

func (s *stub) CuMemFreeHost(p uintptr) driver.CUresult {
	return s.destroy("cuMemFreeHost", "pinned", p)
}

func (s *stub) CuMemHostRegister(p uintptr, _ uint64, _ uint32) driver.CUresult {
	r := s.needContext("cuMemHostRegister")
	if r == driver.CUDA_SUCCESS {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.alive[p] = "registered"
	}
	return r
}

func (s *stub) CuMemHostUnregister(p uintptr) driver.CUresult {
	return s.destroy("cuMemHostUnregister", "registered", p)
}

func (s *stub) CuMemAllocManaged(uint64, uint32) (driver.CUdeviceptr, driver.CUresult) {
	h, r := s.make("cuMemAllocManaged", "managed")
	return driver.CUdeviceptr(h), r
}

func (s *stub) CuMemRangeGetAttribute(data []int32, _ driver.CUmem_range_attribute, _ driver.CUdeviceptr, _ uint64) driver.CUresult {
	for i := range data {
		data[i] = driver.CU_DEVICE_INVALID
	}
	return s.needContext("cuMemRangeGetAttribute")
}

func (s *stub) CuDeviceCanAccessPeer(driver.CUdevice, driver.CUdevice) (bool, driver.CUresult) {
	return !s.noPeers, s.call("cuDeviceCanAccessPeer")
}

func (s *stub) CuExternalMemoryGetMappedBuffer(driver.CUexternalMemory, *driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC) (driver.CUdeviceptr, driver.CUresult) {
	h, r := s.make("cuExternalMemoryGetMappedBuffer", "managed")
	return driver.CUdeviceptr(h), r
}

func (s *stub) CuMemFree(p driver.CUdeviceptr) driver.CUresult {
	return s.destroy("cuMemFree", "managed", uintptr(p))
}

func (s *stub) CuModuleLoadDataEx([]byte) (driver.CUmodule, string, driver.CUresult) {
	h, r := s.make("cuModuleLoadDataEx", "module")
	return driver.CUmodule(h), "line 2; error : bad", r
}

func (s *stub) CuModuleUnload(m driver.CUmodule) driver.CUresult {
	return s.destroy("cuModuleUnload", "module", uintptr(m))
}

func (s *stub) CuModuleGetFunction(_ driver.CUmodule, name string) (driver.CUfunction, driver.CUresult) {
	if name == "missing" {
		return 0, driver.CUDA_ERROR_NOT_FOUND
	}
	return 0xF0, s.call("cuModuleGetFunction")
}

func (s *stub) CuModuleFunctionNames(driver.CUmodule) ([]string, driver.CUresult) {
	return []string{"one", "two"}, s.call("cuModuleEnumerateFunctions")
}

// CuFuncGetParamInfo describes a kernel with a pointer and a struct of 12 bytes.
func (s *stub) CuFuncGetParamInfo(_ driver.CUfunction, i uint64) (offset, size uint64, r driver.CUresult) {
	if r := s.call("cuFuncGetParamInfo"); r != driver.CUDA_SUCCESS || i > 1 {
		return 0, 0, max(r, driver.CUDA_ERROR_INVALID_VALUE)
	}
	return 8 * i, 8 + 4*i, driver.CUDA_SUCCESS
}

func (s *stub) CuFuncGetAttribute(driver.CUfunction_attribute, driver.CUfunction) (int32, driver.CUresult) {
	return 256, s.call("cuFuncGetAttribute")
}

func (s *stub) CuGraphInstantiateWithParams(_ driver.CUgraph, p *driver.CUDA_GRAPH_INSTANTIATE_PARAMS) (driver.CUgraphExec, driver.CUresult) {
	h, r := s.make("cuGraphInstantiate", "exec")
	if s.report != "" {
		p.Result_out = driver.CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
		p.HErrNode_out = 0x77
	}
	return driver.CUgraphExec(h), r
}

func (s *stub) CuGraphExecDestroy(x driver.CUgraphExec) driver.CUresult {
	return s.destroy("cuGraphExecDestroy", "exec", uintptr(x))
}

func (s *stub) CuGraphExecUpdate(driver.CUgraphExec, driver.CUgraph) (driver.CUgraphExecUpdateResultInfo, driver.CUresult) {
	return driver.CUgraphExecUpdateResultInfo{Result: driver.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, ErrorNode: 0x88}, s.call("cuGraphExecUpdate")
}
