// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// An Exporter stands for another API, which exports semaphores and memory.
type Exporter interface {
	// Semaphore returns a new descriptor of a semaphore, and where it has its value:
	// of one that is no timeline 1 while it is signaled.
	Semaphore(timeline bool) (fd int32, value *atomic.Uint64)
	// Memory returns a new descriptor of memory, and the other API's view of it.
	Memory(size int) (fd int32, bytes []byte)
}

var externals = map[string]func(*suite){
	"semaphore is signaled behind earlier work":            semaphoreSignal,
	"wait for a semaphore holds back its stream alone":     semaphoreWait,
	"semaphore that is no timeline is signaled anew":       semaphoreBinary,
	"semaphores are captured as nodes":                     semaphoreCapture,
	"semaphore nodes run at each launch, and are updated":  semaphoreNodes,
	"wait node does not keep back what it waits for":       semaphoreNodeBeside,
	"semaphores are refused":                               semaphoreRefusals,
	"external memory is the same memory":                   externalMemorySame,
	"external memory has bounds, and outlives its mapping": externalMemoryBounds,
	"external memory is refused":                           externalMemoryRefusals,
}

func (s *suite) exporter() Exporter {
	if s.options.Exporter == nil {
		s.Skip("nothing here exports semaphores and memory; tests_py/interop/test_vulkan.py has Vulkan")
	}
	return s.options.Exporter
}

const (
	opaqueSemaphore = driver.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD
	timeline        = driver.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
	opaqueMemory    = driver.CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
)

// semaphore imports a new semaphore.
func (s *suite) semaphore(typ driver.CUexternalSemaphoreHandleType) (driver.CUexternalSemaphore, *atomic.Uint64) {
	s.Helper()
	fd, value := s.exporter().Semaphore(typ == timeline)
	h, r := s.CuImportExternalSemaphore(&driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC{Type: typ, Fd: fd})
	s.ok(r)
	s.cleanup(func() { s.CuDestroyExternalSemaphore(h) })
	return h, value
}

func (s *suite) signal(sem driver.CUexternalSemaphore, value uint64, st driver.CUstream) driver.CUresult {
	return s.CuSignalExternalSemaphoresAsync([]driver.CUexternalSemaphore{sem}, []driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS{{Value: value}}, st)
}

func (s *suite) await(sem driver.CUexternalSemaphore, value uint64, st driver.CUstream) driver.CUresult {
	return s.CuWaitExternalSemaphoresAsync([]driver.CUexternalSemaphore{sem}, []driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS{{Value: value}}, st)
}

// signalParams are the parameters of a node that signals; so are waitParams.
func (s *suite) signalParams(value uint64, sems ...driver.CUexternalSemaphore) *driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
	params := make([]driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, len(sems))
	for i := range params {
		params[i].Value = value
	}
	list, values := s.pinnedArrays(unsafe.Pointer(unsafe.SliceData(sems)), unsafe.Pointer(unsafe.SliceData(params)))
	return &driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS{ExtSemArray: list, ParamsArray: values, NumExtSems: uint32(len(sems))}
}

func (s *suite) waitParams(value uint64, sems ...driver.CUexternalSemaphore) *driver.CUDA_EXT_SEM_WAIT_NODE_PARAMS {
	params := make([]driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, len(sems))
	for i := range params {
		params[i].Value = value
	}
	list, values := s.pinnedArrays(unsafe.Pointer(unsafe.SliceData(sems)), unsafe.Pointer(unsafe.SliceData(params)))
	return &driver.CUDA_EXT_SEM_WAIT_NODE_PARAMS{ExtSemArray: list, ParamsArray: values, NumExtSems: uint32(len(sems))}
}

func (s *suite) pinnedArrays(list, params unsafe.Pointer) (unsafe.Pointer, unsafe.Pointer) {
	pinner := &runtime.Pinner{}
	pinner.Pin(list)
	pinner.Pin(params)
	s.cleanup(pinner.Unpin)
	return list, params
}

func semaphoreSignal(s *suite) {
	sem, value := s.semaphore(timeline)
	p, st := s.word(1), s.stream()
	gate := s.hold(st)
	s.ok(s.launch(st, s.kernel("step"), p, uint32(2), uint32(3)))
	s.ok(s.signal(sem, 1<<40, st))
	require.Zero(s.T, value.Load(), "signaled before the work that it follows")
	gate.open()
	s.ok(s.CuStreamSynchronize(st))
	require.EqualValues(s.T, 1<<40, value.Load())
	s.same(5, p)
}

func semaphoreWait(s *suite) {
	sem, value := s.semaphore(timeline)
	p, q, waiting, free, step := s.word(1), s.word(1), s.stream(), s.stream(), s.kernel("step")
	s.cleanup(func() { value.Store(9) })
	s.ok(s.await(sem, 7, waiting))
	s.ok(s.launch(waiting, step, p, uint32(0), uint32(8)))
	s.ok(s.launch(free, step, q, uint32(0), uint32(9)))
	s.ok(s.CuStreamSynchronize(free))
	value.Store(6)
	s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(waiting))
	value.Store(8)
	s.ok(s.CuStreamSynchronize(waiting))
	s.same(8, p)
	s.same(9, q)
}

func semaphoreBinary(s *suite) {
	sem, value := s.semaphore(opaqueSemaphore)
	a, b := s.stream(), s.stream()
	for range 3 {
		s.ok(s.await(sem, 0, b))
		s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(b))
		s.ok(s.signal(sem, 0, a))
		s.ok(s.CuStreamSynchronize(b))
		require.Zero(s.T, value.Load(), "a wait undoes the signal")
	}
}

func semaphoreCapture(s *suite) {
	sem, value := s.semaphore(timeline)
	s.cleanup(func() { value.Store(99) })
	p, st := s.word(0), s.stream()
	s.ok(s.CuStreamBeginCapture(st, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
	s.ok(s.await(sem, 1, st))
	s.ok(s.launch(st, s.kernel("step"), p, uint32(1), uint32(2)))
	s.ok(s.signal(sem, 2, st))
	g, r := s.CuStreamEndCapture(st)
	s.ok(r)
	s.cleanup(func() { s.CuGraphDestroy(g) })
	list, r := s.CuGraphGetNodes(g)
	s.ok(r)
	kinds := map[driver.CUgraphNodeType]int{}
	for _, n := range list {
		kind, r := s.CuGraphNodeGetType(n)
		s.ok(r)
		kinds[kind]++
	}
	require.Equal(s.T, map[driver.CUgraphNodeType]int{
		driver.CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: 1, driver.CU_GRAPH_NODE_TYPE_KERNEL: 1, driver.CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: 1,
	}, kinds)
	x := s.instantiate(g)
	require.Zero(s.T, value.Load())
	for range 2 {
		value.Store(0)
		s.ok(s.CuGraphLaunch(x, st))
		s.code(driver.CUDA_ERROR_NOT_READY, s.CuStreamQuery(st))
		value.Store(1)
		s.ok(s.CuStreamSynchronize(st))
		require.EqualValues(s.T, 2, value.Load())
	}
	s.same(4, p)
}

func semaphoreNodes(s *suite) {
	a, first := s.semaphore(timeline)
	b, second := s.semaphore(timeline)
	g, st := s.graph(), s.stream()
	signal, r := s.CuGraphAddExternalSemaphoresSignalNode(g, nil, s.signalParams(1, a, b))
	s.ok(r)
	wait, r := s.CuGraphAddExternalSemaphoresWaitNode(g, []driver.CUgraphNode{signal}, s.waitParams(1, a))
	s.ok(r)
	before := s.instantiate(g)
	s.launchAndWait(before, st)
	require.Equal(s.T, []uint64{1, 1}, []uint64{first.Load(), second.Load()})
	s.ok(s.CuGraphExternalSemaphoresSignalNodeSetParams(signal, s.signalParams(2, a)))
	s.ok(s.CuGraphExternalSemaphoresWaitNodeSetParams(wait, s.waitParams(2, a)))
	after := s.instantiate(g)
	s.launchAndWait(after, st)
	require.Equal(s.T, []uint64{2, 1}, []uint64{first.Load(), second.Load()})
	s.ok(s.CuGraphExecExternalSemaphoresSignalNodeSetParams(after, signal, s.signalParams(5, b)))
	s.ok(s.CuGraphExecExternalSemaphoresWaitNodeSetParams(after, wait, s.waitParams(5, b)))
	s.launchAndWait(after, st)
	require.Equal(s.T, []uint64{2, 5}, []uint64{first.Load(), second.Load()})
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphExecExternalSemaphoresSignalNodeSetParams(after, wait, s.signalParams(5, b)))
	s.code(driver.CUDA_ERROR_INVALID_VALUE, s.CuGraphExternalSemaphoresWaitNodeSetParams(signal, s.waitParams(5, b)))
}

func semaphoreNodeBeside(s *suite) {
	sem, value := s.semaphore(timeline)
	s.cleanup(func() { value.Store(99) })
	g := s.graph()
	_, r := s.CuGraphAddExternalSemaphoresWaitNode(g, nil, s.waitParams(1, sem))
	s.ok(r)
	_, r = s.CuGraphAddExternalSemaphoresSignalNode(g, nil, s.signalParams(1, sem))
	s.ok(r)
	s.launchAndWait(s.instantiate(g), s.stream())
}

// A descriptor of something else is refused, and stays the caller's.
func semaphoreRefusals(s *suite) {
	fd := s.otherFile()
	for _, typ := range []driver.CUexternalSemaphoreHandleType{opaqueSemaphore, timeline} {
		_, r := s.CuImportExternalSemaphore(&driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC{Type: typ, Fd: fd})
		require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
	}
	s.isOpen(fd)
}

func (s *suite) otherFile() int32 {
	s.Helper()
	fd, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	require.NoError(s.T, err)
	s.cleanup(func() { require.NoError(s.T, syscall.Close(fd)) })
	return int32(fd)
}

func (s *suite) isOpen(fd int32) {
	s.Helper()
	var info syscall.Stat_t
	require.NoError(s.T, syscall.Fstat(int(fd), &info))
}

// external imports new memory.
func (s *suite) external(size int) (driver.CUexternalMemory, []byte) {
	s.Helper()
	fd, bytes := s.exporter().Memory(size)
	m, r := s.CuImportExternalMemory(&driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC{
		Type: opaqueMemory, Fd: fd, Size: uint64(size), Flags: driver.CUDA_EXTERNAL_MEMORY_DEDICATED,
	})
	s.ok(r)
	return m, bytes
}

func externalMemorySame(s *suite) {
	m, bytes := s.external(2 << 16)
	st := s.stream()
	whole, r := s.CuExternalMemoryGetMappedBuffer(m, &driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC{Size: 2 << 16})
	s.ok(r)
	half, r := s.CuExternalMemoryGetMappedBuffer(m, &driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC{Offset: 1 << 16, Size: 1 << 16})
	s.ok(r)
	s.ok(s.CuMemsetD8Async(whole, 3, 2<<16, st))
	s.ok(s.CuMemsetD8Async(half, 4, 1, st))
	s.ok(s.CuStreamSynchronize(st))
	require.Equal(s.T, []byte{3, 4, 3}, []byte{bytes[0], bytes[1<<16], bytes[1<<16+1]})
	bytes[1<<16] = 7
	s.same(0x03030307, half)
	s.same(0x03030307, whole+1<<16)
	s.ok(s.CuMemFree(half))
	s.ok(s.CuMemFree(whole))
	s.ok(s.CuDestroyExternalMemory(m))
	require.EqualValues(s.T, 7, bytes[1<<16], "it remains the other API's")
}

func externalMemoryBounds(s *suite) {
	const size = 2 << 16
	m, _ := s.external(size)
	for _, d := range []driver.CUDA_EXTERNAL_MEMORY_BUFFER_DESC{{Size: size + 1}, {Offset: size, Size: 1}, {Offset: 1 << 16, Size: 1<<16 + 1}, {}} {
		_, r := s.CuExternalMemoryGetMappedBuffer(m, &d)
		require.NotEqual(s.T, driver.CUDA_SUCCESS, r, "%+v", d)
	}
	s.ok(s.CuDestroyExternalMemory(m))
}

// NVIDIA's driver, 580, closes the descriptor all the same.
func externalMemoryRefusals(s *suite) {
	fd, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	require.NoError(s.T, err)
	s.cleanup(func() { _ = syscall.Close(fd) })
	_, r := s.CuImportExternalMemory(&driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC{Type: opaqueMemory, Fd: int32(fd), Size: 4096})
	require.NotEqual(s.T, driver.CUDA_SUCCESS, r)
}
