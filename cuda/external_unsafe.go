// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// An ExternalSemaphore is a semaphore of another API, such as Vulkan, which
// streams and graphs signal and wait for.
//
// # Lifetime
//
// Close it when all work that uses it has ended: unlike an event, the driver must
// not destroy it before. Safe for concurrent use.
type ExternalSemaphore struct {
	ctx      *Context
	h        driver.CUexternalSemaphore // immutable
	timeline bool                       // immutable
	uses     uses
}

// duplicate is F_DUPFD_CLOEXEC, linux/fcntl.h.
const duplicate = 1030

// given returns a duplicate of the caller's descriptor for the driver, which owns
// it once the import has succeeded.
func given(fd int) (own int, err error) {
	if fd >= 0 && fd <= 1<<31-1 {
		made, _, failed := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), duplicate, 0)
		if failed == 0 {
			return int(made), nil
		}
		err = failed
	} else {
		err = syscall.EBADF
	}
	return -1, badValue("fd", "must be an open file descriptor, got %d: %v", fd, err)
}

// ImportSemaphore imports the semaphore that the descriptor is of: a timeline, or
// one that a wait undoes the signal of. The descriptor remains the caller's. It
// calls cuImportExternalSemaphore.
//
// Lifetime: the caller must Close it.
//
// Errors: an [*ArgumentError] if fd is not open; an [*Error] if the driver
// imports no such thing.
func (c *Context) ImportSemaphore(fd int, timeline bool) (*ExternalSemaphore, error) {
	own, err := given(fd)
	if err != nil {
		return nil, err
	}
	desc := &driver.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC{Type: driver.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, Fd: int32(own)}
	if timeline {
		desc.Type = driver.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
	}
	h, err := importWith(c, own, "cuImportExternalSemaphore", c.whyNoSemaphore(fd, timeline), func(api driver.API) (driver.CUexternalSemaphore, driver.CUresult) {
		return api.CuImportExternalSemaphore(desc)
	})
	if err != nil {
		return nil, err
	}
	c.drv.live.semaphores.Add(1)
	return &ExternalSemaphore{ctx: c, h: h, timeline: timeline}, nil
}

// importWith makes the call that gives a descriptor to the driver, and closes it
// if the driver refuses it. As allocations, it is made in relaxed capture mode.
func importWith[T any](c *Context, own int, op, detail string, call func(driver.API) (T, driver.CUresult)) (h T, err error) {
	leave, err := c.enterRelaxed()
	if err != nil {
		_ = syscall.Close(own)
		return h, err
	}
	defer leave()
	var before syscall.Stat_t
	known := syscall.Fstat(own, &before) == nil
	h, r := call(c.drv.api)
	if r != driver.CUDA_SUCCESS {
		if known {
			closeIfSame(own, before)
		}
		return h, c.fail(op, r, detail)
	}
	return h, nil
}

// closeIfSame closes a descriptor that a failed call was given. NVIDIA's driver,
// 580, closes that of memory itself: then the number may be another file's by now.
func closeIfSame(fd int, before syscall.Stat_t) {
	var now syscall.Stat_t
	if syscall.Fstat(fd, &now) == nil && now.Dev == before.Dev && now.Ino == before.Ino {
		_ = syscall.Close(fd)
	}
}

func (c *Context) whyNoSemaphore(fd int, timeline bool) string {
	kind := "semaphore that is no timeline"
	if timeline {
		kind = "timeline semaphore"
	}
	text := fmt.Sprintf("file descriptor %d as a %s", fd, kind)
	if c.drv.Name() == "sim" {
		text += "; the simulated driver knows those of cudago.sim.create_semaphore, of the same kind"
	}
	return text
}

// Handle returns the CUexternalSemaphore. It must not be used after Close.
func (e *ExternalSemaphore) Handle() uintptr { return uintptr(e.h) }

// Context returns the context that e was imported into.
func (e *ExternalSemaphore) Context() *Context { return e.ctx }

// IsTimeline reports whether e counts.
func (e *ExternalSemaphore) IsTimeline() bool { return e.timeline }

// String returns "external semaphore 0x55d0c8".
func (e *ExternalSemaphore) String() string {
	return fmt.Sprintf("external semaphore %#x", uintptr(e.h))
}

// Use keeps the handle valid until done, which must be called exactly once. Close
// does not wait for done.
//
// Errors: [ErrClosed] after Close.
func (e *ExternalSemaphore) Use() (done func(), err error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	return e.end, nil
}

// UseAgain is Use beside another that is not done, after Close too.
func (e *ExternalSemaphore) UseAgain() (done func(), err error) {
	if err := e.count(e.uses.again); err != nil {
		return nil, err
	}
	return e.end, nil
}

func (e *ExternalSemaphore) begin() error { return e.count(e.uses.begin) }

func (e *ExternalSemaphore) count(one func() bool) error {
	if e.ctx.IsLost() {
		return e.ctx.lostError(e.String())
	}
	if !one() {
		return &ClosedError{e.String()}
	}
	return nil
}

func (e *ExternalSemaphore) end() {
	if e.uses.end() {
		e.destroy()
	}
}

// Close ends the use of e. Closing twice is fine. It calls
// cuDestroyExternalSemaphore unless e is in use; then the last user does.
func (e *ExternalSemaphore) Close() error {
	if e.uses.close() {
		e.destroy()
	}
	return nil
}

func (e *ExternalSemaphore) destroy() {
	c := e.ctx
	c.dispose("cuDestroyExternalSemaphore", e.String(), nil, &c.drv.live.semaphores, func(api driver.API) driver.CUresult {
		return api.CuDestroyExternalSemaphore(e.h)
	}, nil)
}

// SemaphoreParams says what is signaled, or waited for.
type SemaphoreParams struct {
	Semaphore *ExternalSemaphore
	Value     uint64 // of a timeline: what it is set to, or at least has to have
	IsWait    bool
}

// String returns "signal external semaphore 0x55d0c8 with 7", or "wait for ...".
func (p *SemaphoreParams) String() string {
	verb, with := "signal", "with"
	if p.IsWait {
		verb, with = "wait for", "to have"
	}
	if !p.Semaphore.timeline {
		return fmt.Sprintf("%s %v", verb, p.Semaphore)
	}
	return fmt.Sprintf("%s %v %s %d", verb, p.Semaphore, with, p.Value)
}

// SemaphoreOp signals a semaphore, or makes what follows in s wait for one. It
// calls cuSignalExternalSemaphoresAsync or cuWaitExternalSemaphoresAsync.
//
// Stream-ordered on s; returns before completion. Captured as a node. The caller
// must keep the semaphore open until the work has completed.
//
// Errors: an [*ArgumentError] if the semaphore was imported for another device;
// [ErrClosed]; otherwise an [*Error].
func SemaphoreOp(p SemaphoreParams, s *Stream) error {
	e := p.Semaphore
	if e.ctx != s.ctx {
		return badValue("semaphore", "must be of %v, as the stream is, got one of %v", s.ctx.dev, e.ctx.dev)
	}
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	list := []driver.CUexternalSemaphore{e.h}
	op := "cuSignalExternalSemaphoresAsync"
	var r driver.CUresult
	if p.IsWait {
		op = "cuWaitExternalSemaphoresAsync"
		r = s.ctx.drv.api.CuWaitExternalSemaphoresAsync(list, []driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS{{Value: p.Value}}, s.h)
	} else {
		r = s.ctx.drv.api.CuSignalExternalSemaphoresAsync(list, []driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS{{Value: p.Value}}, s.h)
	}
	if r != driver.CUDA_SUCCESS {
		return s.ctx.fail(op, r, p.String())
	}
	return nil
}

// semaphoreNode runs one of two calls with the parameters of a node of one
// semaphore, which they hold the address of.
func (c *Context) semaphoreNode(p *SemaphoreParams, signal func(*driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) error,
	wait func(*driver.CUDA_EXT_SEM_WAIT_NODE_PARAMS) error) error {
	if p.Semaphore.ctx != c {
		return badValue("semaphore", "must be of %v, as the graph is, got one of %v", c.dev, p.Semaphore.ctx.dev)
	}
	uses := &p.Semaphore.uses
	if err := p.Semaphore.count(func() bool { return uses.begin() || uses.again() }); err != nil { // what a node has may be closed
		return err
	}
	defer p.Semaphore.end()
	var pinner runtime.Pinner // cgo may not see pointers in what it is given
	defer pinner.Unpin()
	h := &p.Semaphore.h
	pinner.Pin(h)
	if p.IsWait {
		params := &driver.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS{Value: p.Value}
		pinner.Pin(params)
		return wait(&driver.CUDA_EXT_SEM_WAIT_NODE_PARAMS{ExtSemArray: unsafe.Pointer(h), ParamsArray: unsafe.Pointer(params), NumExtSems: 1})
	}
	params := &driver.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS{Value: p.Value}
	pinner.Pin(params)
	return signal(&driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS{ExtSemArray: unsafe.Pointer(h), ParamsArray: unsafe.Pointer(params), NumExtSems: 1})
}

// AddSemaphoreNode adds a node that signals a semaphore or waits for one. It
// calls cuGraphAddExternalSemaphoresSignalNode or
// cuGraphAddExternalSemaphoresWaitNode.
func (c *Context) AddSemaphoreNode(g GraphHandle, deps []NodeHandle, p *SemaphoreParams) (n NodeHandle, err error) {
	err = c.semaphoreNode(p, func(a *driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) (err error) {
		n, err = callNode(c, "cuGraphAddExternalSemaphoresSignalNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
			return api.CuGraphAddExternalSemaphoresSignalNode(driver.CUgraph(g), toNodes(deps), a)
		})
		return err
	}, func(a *driver.CUDA_EXT_SEM_WAIT_NODE_PARAMS) (err error) {
		n, err = callNode(c, "cuGraphAddExternalSemaphoresWaitNode", func(api driver.API) (driver.CUgraphNode, driver.CUresult) {
			return api.CuGraphAddExternalSemaphoresWaitNode(driver.CUgraph(g), toNodes(deps), a)
		})
		return err
	})
	return n, err
}

// SetSemaphoreNodeParams calls cuGraphExternalSemaphoresSignalNodeSetParams or
// cuGraphExternalSemaphoresWaitNodeSetParams.
func (c *Context) SetSemaphoreNodeParams(n NodeHandle, p *SemaphoreParams) error {
	return c.semaphoreNode(p, func(a *driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) error {
		return call0(c, "cuGraphExternalSemaphoresSignalNodeSetParams", func(api driver.API) driver.CUresult {
			return api.CuGraphExternalSemaphoresSignalNodeSetParams(driver.CUgraphNode(n), a)
		})
	}, func(a *driver.CUDA_EXT_SEM_WAIT_NODE_PARAMS) error {
		return call0(c, "cuGraphExternalSemaphoresWaitNodeSetParams", func(api driver.API) driver.CUresult {
			return api.CuGraphExternalSemaphoresWaitNodeSetParams(driver.CUgraphNode(n), a)
		})
	})
}

// ExecSetSemaphoreParams calls cuGraphExecExternalSemaphoresSignalNodeSetParams or
// cuGraphExecExternalSemaphoresWaitNodeSetParams.
func (c *Context) ExecSetSemaphoreParams(x ExecHandle, n NodeHandle, p *SemaphoreParams) error {
	return c.semaphoreNode(p, func(a *driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) error {
		return call0(c, "cuGraphExecExternalSemaphoresSignalNodeSetParams", func(api driver.API) driver.CUresult {
			return api.CuGraphExecExternalSemaphoresSignalNodeSetParams(driver.CUgraphExec(x), driver.CUgraphNode(n), a)
		})
	}, func(a *driver.CUDA_EXT_SEM_WAIT_NODE_PARAMS) error {
		return call0(c, "cuGraphExecExternalSemaphoresWaitNodeSetParams", func(api driver.API) driver.CUresult {
			return api.CuGraphExecExternalSemaphoresWaitNodeSetParams(driver.CUgraphExec(x), driver.CUgraphNode(n), a)
		})
	})
}
