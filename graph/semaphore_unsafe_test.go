// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/memfd"
)

// semaphorePage is a timeline that the simulated driver imports. It stays mapped.
func semaphorePage() (f *os.File, value *atomic.Uint64) {
	f, err := memfd.Create("test")
	if err == nil {
		err = f.Truncate(4096)
	}
	var mem []byte
	if err == nil {
		mem, err = syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err != nil {
		panic(err)
	}
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), 3)
	words[0], words[1] = 0x616d657367756463, 9
	return f, (*atomic.Uint64)(unsafe.Pointer(&words[2]))
}

func semaphore(t *testing.T, ctx *cuda.Context) (*cuda.ExternalSemaphore, *atomic.Uint64) {
	t.Helper()
	f, value := semaphorePage()
	e, err := ctx.ImportSemaphore(int(f.Fd()), true)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return e, value
}

// A semaphore and its operands live as long as a graph, a clone, an executable or
// a launch can use them.
func TestSemaphoreIsKept(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	e, value := semaphore(t, ctx)
	ops := tokens(3)
	g, err := New(ctx, Options{})
	require.NoError(t, err)
	wait, err := g.Semaphore(cuda.SemaphoreParams{Semaphore: e, Value: 1, IsWait: true}, NodeOptions{Operands: operands(ops[0])})
	require.NoError(t, err)
	require.Equal(t, cuda.SemaphoreWaitNode, wait.Kind())
	signal, err := g.Semaphore(cuda.SemaphoreParams{Semaphore: e, Value: 2}, NodeOptions{Deps: []*Node{wait}, Operands: operands(ops[1])})
	require.NoError(t, err)
	require.Equal(t, cuda.SemaphoreParams{Semaphore: e, Value: 2}, signal.Params())
	require.NoError(t, e.Close())
	clone, err := g.Clone(Options{})
	require.NoError(t, err)
	require.NoError(t, g.Close())
	x, err := clone.Instantiate(ExecOptions{})
	require.NoError(t, err)
	require.NoError(t, clone.Close())
	kept(t, ops[0], ops[1])
	require.NoError(t, x.Launch(s))
	require.NoError(t, x.Close())
	kept(t, ops[0], ops[1])
	require.Equal(t, 1, ctx.Driver().Live()["ExternalSemaphore"])
	value.Store(1)
	require.NoError(t, s.Synchronize())
	require.EqualValues(t, 2, value.Load())
	eventuallyReleased(t, ops[0], ops[1])
}

func TestSemaphoreUpdates(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	a, first := semaphore(t, ctx)
	b, second := semaphore(t, ctx)
	ops := tokens(4)
	g, err := New(ctx, Options{})
	require.NoError(t, err)
	n, err := g.Semaphore(cuda.SemaphoreParams{Semaphore: a, Value: 1}, NodeOptions{Name: "done", Operands: operands(ops[0])})
	require.NoError(t, err)
	x, err := g.Instantiate(ExecOptions{})
	require.NoError(t, err)
	require.NoError(t, n.UpdateSemaphore(cuda.SemaphoreParams{Semaphore: b, Value: 2}, operands(ops[1])))
	kept(t, ops[0])
	require.NoError(t, x.Launch(s))
	require.NoError(t, x.Node("done").UpdateSemaphore(cuda.SemaphoreParams{Semaphore: b, Value: 3}, operands(ops[2])))
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.Equal(t, []uint64{1, 3}, []uint64{first.Load(), second.Load()})
	eventuallyReleased(t, ops[0])
	kept(t, ops[1], ops[2])
	var bad *cuda.ArgumentError
	require.ErrorAs(t, n.UpdateSemaphore(cuda.SemaphoreParams{Semaphore: b, IsWait: true}, operands(ops[3])), &bad)
	released(t, ops[3])
	require.NoError(t, a.Close())
	require.ErrorIs(t, n.UpdateSemaphore(cuda.SemaphoreParams{Semaphore: a}, operands(&token{name: "late"})), cuda.ErrClosed)
	require.NoError(t, b.Close())
	more := tokens(2)
	require.NoError(t, n.UpdateSemaphore(cuda.SemaphoreParams{Semaphore: b, Value: 4}, operands(more[0])), "the node's own, closed")
	require.NoError(t, x.Node("done").UpdateSemaphore(cuda.SemaphoreParams{Semaphore: b, Value: 5}, operands(more[1])))
	eventuallyReleased(t, ops[1], ops[2])
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
	eventuallyReleased(t, more[0], more[1])
	require.Zero(t, ctx.Driver().Live()["ExternalSemaphore"])
}

func TestCapturedSemaphore(t *testing.T) {
	ctx := open(t)
	s := newStream(t, ctx)
	e, value := semaphore(t, ctx)
	ops := tokens(1)
	c, err := Begin(s, cuda.CaptureRelaxed, Options{})
	require.NoError(t, err)
	p := cuda.SemaphoreParams{Semaphore: e, Value: 4}
	require.NoError(t, c.Record(s, Operation{Params: p, Operands: operands(ops...)}, func() error { return cuda.SemaphoreOp(p, s) }))
	require.NoError(t, e.Close())
	g, err := c.End()
	require.NoError(t, err)
	require.Equal(t, cuda.SemaphoreSignalNode, g.Nodes()[0].Kind())
	x, err := g.Instantiate(ExecOptions{})
	require.NoError(t, err)
	require.NoError(t, x.Launch(s))
	require.NoError(t, s.Synchronize())
	require.EqualValues(t, 4, value.Load())
	require.NoError(t, x.Close())
	require.NoError(t, g.Close())
	eventuallyReleased(t, ops...)
}
