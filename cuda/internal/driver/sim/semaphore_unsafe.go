// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"runtime"
	"structs"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/memfd"
)

// An external semaphore is a page of a file in memory, by which a test stands in
// for the other API: cudago.sim.create_semaphore makes one. What is written there
// must stay what python/cudago/_memory/exported.py writes.
const semaphoreMagic = 0x616d657367756463 // "cdugsema"

// semaphorePage lies in shared memory.
type semaphorePage struct {
	_     structs.HostLayout
	magic uint64
	kind  uint64        // a CUexternalSemaphoreHandleType
	value atomic.Uint64 // of a timeline; else 1 while it is signaled
}

// externalSemaphore is unmapped when nothing refers to it any more.
type externalSemaphore struct {
	*semaphorePage
	is  driver.CUexternalSemaphoreHandleType // as the page said; others may write there
	ctx *context
}

func (e *externalSemaphore) isTimeline() bool {
	return e.is == driver.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
}

// mapSemaphore maps the page behind a descriptor, if there is one.
func mapSemaphore(fd int) (*externalSemaphore, driver.CUresult) {
	mem, err := memfd.Map(uintptr(fd), 0, uint64(unsafe.Sizeof(semaphorePage{})))
	if err != nil {
		return nil, resultOf(err, driver.CUDA_ERROR_INVALID_HANDLE)
	}
	e := &externalSemaphore{semaphorePage: (*semaphorePage)(unsafe.Pointer(unsafe.SliceData(mem)))}
	runtime.AddCleanup(e, func(mem []byte) { _ = syscall.Munmap(mem) }, mem)
	if e.magic != semaphoreMagic {
		return nil, driver.CUDA_ERROR_INVALID_HANDLE
	}
	e.is = driver.CUexternalSemaphoreHandleType(e.kind)
	return e, driver.CUDA_SUCCESS
}

// CuImportExternalSemaphore takes a page that is of the kind that is asked for.
func (d *simulator) CuImportExternalSemaphore(desc *driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC) (driver.CUexternalSemaphore, driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if desc == nil || desc.Flags != 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	switch desc.Type {
	case driver.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, driver.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD:
	default:
		return 0, driver.CUDA_ERROR_NOT_SUPPORTED
	}
	e, r := mapSemaphore(int(desc.Fd))
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if e.is != desc.Type {
		return 0, driver.CUDA_ERROR_INVALID_HANDLE
	}
	e.ctx = c
	_ = syscall.Close(int(desc.Fd)) // it is the driver's now, and the page is mapped
	return d.semaphores.add(e), driver.CUDA_SUCCESS
}

func (d *simulator) CuDestroyExternalSemaphore(h driver.CUexternalSemaphore) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	e := d.semaphores.take(h)
	if e == nil {
		return driver.CUDA_ERROR_INVALID_HANDLE
	}
	return e.ctx.result()
}

// semaphoreWork signals semaphores, or waits for them, in order.
type semaphoreWork struct {
	waits bool
	ops   []semaphoreOp
}

type semaphoreOp struct {
	sem   *externalSemaphore
	value uint64
}

// come reports whether a wait need not wait, and undoes the signal of what is no
// timeline.
func (o *semaphoreOp) come() bool {
	if o.sem.isTimeline() {
		return o.sem.value.Load() >= o.value
	}
	return o.sem.value.CompareAndSwap(1, 0)
}

func (o *semaphoreOp) signal() {
	if o.sem.isTimeline() {
		o.sem.value.Store(o.value)
	} else {
		o.sem.value.Store(1)
	}
}

func (w *semaphoreWork) run(x *execution) *failure {
	for i := range w.ops {
		o := &w.ops[i]
		if !w.waits {
			o.signal()
			continue
		}
		f := x.await(func() (bool, *failure) { return o.come(), nil }, o.String)
		if f != nil {
			return f
		}
	}
	return nil
}

// String says what a wait waits for.
func (o *semaphoreOp) String() string {
	if o.sem.isTimeline() {
		return fmt.Sprintf("an external semaphore, which has %d, to have %d", o.sem.value.Load(), o.value)
	}
	return "an external semaphore to be signaled"
}

// mayWait implements [awaiting].
func (w *semaphoreWork) mayWait() bool { return w.waits }

// ready implements [awaiting].
func (w *semaphoreWork) ready(*execution) (bool, *failure) {
	o := &w.ops[0]
	if o.sem.isTimeline() {
		return o.sem.value.Load() >= o.value, nil
	}
	return o.sem.value.Load() == 1, nil
}

// newSemaphoreWork checks the semaphores of one call. value and flags are those
// of the i-th.
func (d *simulator) newSemaphoreWork(waits bool, list []driver.CUexternalSemaphore, param func(i int) (value uint64, flags uint32)) (*semaphoreWork, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if len(list) == 0 {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	w := &semaphoreWork{waits: waits}
	for i, h := range list {
		e := d.semaphores.get(h)
		if e == nil {
			return nil, driver.CUDA_ERROR_INVALID_HANDLE
		}
		value, flags := param(i)
		if flags != 0 {
			return nil, driver.CUDA_ERROR_INVALID_VALUE
		}
		w.ops = append(w.ops, semaphoreOp{e, value})
	}
	return w, driver.CUDA_SUCCESS
}

func (d *simulator) semaphoreWork(s driver.CUstream, w *semaphoreWork, r driver.CUresult) driver.CUresult {
	if r != driver.CUDA_SUCCESS {
		return r
	}
	st, r := d.stream(s)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	return d.submit(st, w, w.kind())
}

func (w *semaphoreWork) kind() driver.CUgraphNodeType {
	if w.waits {
		return driver.CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT
	}
	return driver.CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL
}

func (d *simulator) CuSignalExternalSemaphoresAsync(list []driver.CUexternalSemaphore, params []driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, s driver.CUstream) driver.CUresult {
	if len(list) != len(params) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	w, r := d.newSemaphoreWork(false, list, func(i int) (uint64, uint32) { return params[i].Value, params[i].Flags })
	return d.semaphoreWork(s, w, r)
}

func (d *simulator) CuWaitExternalSemaphoresAsync(list []driver.CUexternalSemaphore, params []driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, s driver.CUstream) driver.CUresult {
	if len(list) != len(params) {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	w, r := d.newSemaphoreWork(true, list, func(i int) (uint64, uint32) { return params[i].Value, params[i].Flags })
	return d.semaphoreWork(s, w, r)
}

// newSignalNode copies the semaphores of a node.
func (d *simulator) newSignalNode(p *driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) (*semaphoreWork, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if p == nil || p.ExtSemArray == nil || p.ParamsArray == nil {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	params := unsafe.Slice((*driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS)(p.ParamsArray), p.NumExtSems)
	return d.newSemaphoreWork(false, unsafe.Slice((*driver.CUexternalSemaphore)(p.ExtSemArray), p.NumExtSems),
		func(i int) (uint64, uint32) { return params[i].Value, params[i].Flags })
}

func (d *simulator) newWaitNode(p *driver.CUDA_EXT_SEM_WAIT_NODE_PARAMS) (*semaphoreWork, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if p == nil || p.ExtSemArray == nil || p.ParamsArray == nil {
		return nil, driver.CUDA_ERROR_INVALID_VALUE
	}
	params := unsafe.Slice((*driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS)(p.ParamsArray), p.NumExtSems)
	return d.newSemaphoreWork(true, unsafe.Slice((*driver.CUexternalSemaphore)(p.ExtSemArray), p.NumExtSems),
		func(i int) (uint64, uint32) { return params[i].Value, params[i].Flags })
}

func (d *simulator) CuGraphAddExternalSemaphoresSignalNode(g driver.CUgraph, deps []driver.CUgraphNode, p *driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) (driver.CUgraphNode, driver.CUresult) {
	w, r := d.newSignalNode(p)
	return d.addWork(g, deps, driver.CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, w, r)
}

func (d *simulator) CuGraphAddExternalSemaphoresWaitNode(g driver.CUgraph, deps []driver.CUgraphNode, p *driver.CUDA_EXT_SEM_WAIT_NODE_PARAMS) (driver.CUgraphNode, driver.CUresult) {
	w, r := d.newWaitNode(p)
	return d.addWork(g, deps, driver.CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, w, r)
}

// setSemaphores gives a node of a graph other semaphores.
func (d *simulator) setSemaphores(h driver.CUgraphNode, w *semaphoreWork, r driver.CUresult) driver.CUresult {
	if r != driver.CUDA_SUCCESS {
		return r
	}
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, old, r := workOf[*semaphoreWork](d, h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if old.waits != w.waits {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	n.work = w
	return r
}

func (d *simulator) CuGraphExternalSemaphoresSignalNodeSetParams(h driver.CUgraphNode, p *driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) driver.CUresult {
	w, r := d.newSignalNode(p)
	return d.setSemaphores(h, w, r)
}

func (d *simulator) CuGraphExternalSemaphoresWaitNodeSetParams(h driver.CUgraphNode, p *driver.CUDA_EXT_SEM_WAIT_NODE_PARAMS) driver.CUresult {
	w, r := d.newWaitNode(p)
	return d.setSemaphores(h, w, r)
}

func (d *simulator) CuGraphExecExternalSemaphoresSignalNodeSetParams(x driver.CUgraphExec, n driver.CUgraphNode, p *driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) driver.CUresult {
	w, r := d.newSignalNode(p)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	return d.replace(x, n, w)
}

func (d *simulator) CuGraphExecExternalSemaphoresWaitNodeSetParams(x driver.CUgraphExec, n driver.CUgraphNode, p *driver.CUDA_EXT_SEM_WAIT_NODE_PARAMS) driver.CUresult {
	w, r := d.newWaitNode(p)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	return d.replace(x, n, w)
}

// replaces reports whether an update may put w in the place of old.
func (w *semaphoreWork) replaces(old work) bool {
	o, ok := old.(*semaphoreWork)
	return ok && o.waits == w.waits && len(o.ops) == len(w.ops)
}

// context is that of the first semaphore.
func (w *semaphoreWork) context() *context { return w.ops[0].sem.ctx }
