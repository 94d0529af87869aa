// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build cudagotest

package graph

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// A scenario makes and uses one of everything. Whatever fails, what it handed
// over is released exactly once, and nothing is left.
type scenario struct {
	ctx  *cuda.Context
	all  []*token
	errs []error

	wrong []string
}

// operand hands over a new token.
func (c *scenario) operand() []Operand {
	k := &token{name: "op"}
	c.all = append(c.all, k)
	return operands(k)
}

func (c *scenario) try(err error) {
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

func (c *scenario) run() {
	s, err := c.ctx.NewStream(cuda.StreamOptions{})
	if err != nil {
		c.try(err)
		return
	}
	c.build()
	c.edit()
	c.special()
	c.launch(s)
	c.capture(s)
	c.lines(s)
	c.try(s.Close())
}

func (c *scenario) build() {
	g, err := New(c.ctx, Options{})
	if err != nil {
		c.try(err)
		return
	}
	n, err := g.Host(hostFunc(func() {}), NodeOptions{Name: "call", Operands: c.operand()})
	c.try(err)
	if n != nil {
		c.try(n.UpdateHost(hostFunc(func() {}), c.operand()))
	}
	_, err = g.Empty(NodeOptions{Operands: c.operand()})
	c.try(err)
	clone, err := g.Clone(Options{})
	c.try(err)
	if clone != nil {
		_, err := clone.Child(g, NodeOptions{Name: "sub", Operands: c.operand()})
		c.try(err)
		held := len(g.Retained())
		_, err = clone.Move(g, NodeOptions{Name: "moved", Operands: c.operand()})
		c.try(err)
		c.want(g.IsClosed() == (err == nil), "closed after Move")
		c.want(err == nil || len(g.Retained()) == held, "operands after Move")
		c.try(clone.Close())
	}
	c.try(g.Close())
}

// edit changes nodes and edges. What a failed call was to change is as it was.
func (c *scenario) edit() {
	g, err := New(c.ctx, Options{})
	if err != nil {
		c.try(err)
		return
	}
	first, err := g.Host(hostFunc(func() {}), NodeOptions{Operands: c.operand()})
	c.try(err)
	second, err := g.Host(hostFunc(func() {}), NodeOptions{Operands: c.operand()})
	c.try(err)
	if first != nil && second != nil {
		edges := 0
		if err := g.AddEdge(first, second, cuda.EdgeData{}); err == nil {
			edges++
		} else {
			c.try(err)
		}
		c.want(len(g.Edges()) == edges, "edges after AddEdge")
		if edges > 0 {
			if err := g.RemoveEdge(first, second); err == nil {
				edges--
			} else {
				c.try(err)
			}
		}
		c.want(len(g.Edges()) == edges, "edges after RemoveEdge")
		nodes := 2
		if err := g.Remove(first); err == nil {
			nodes--
		} else {
			c.try(err)
		}
		c.want(len(g.Nodes()) == nodes && first.IsRemoved() == (nodes == 1), "nodes after Remove")
		c.want(len(g.Retained()) == nodes, "operands after Remove")
	}
	c.try(g.Close())
}

// want notes what is not so as a defect, which no failed call excuses.
func (c *scenario) want(is bool, what string) {
	if !is {
		c.wrong = append(c.wrong, what)
	}
}

// special builds what has one executable and no copies.
func (c *scenario) special() {
	g, err := New(c.ctx, Options{})
	if err != nil {
		c.try(err)
		return
	}
	n, err := g.Alloc(8, NodeOptions{Operands: c.operand()})
	c.try(err)
	if n != nil {
		hold, err := n.Memory()
		c.try(err)
		defer hold.Release()
		_, err = g.Free(hold, NodeOptions{Operands: c.operand()})
		c.try(err)
	}
	e, err := c.ctx.NewEvent(cuda.EventOptions{})
	c.try(err)
	if e != nil {
		_, err = g.EventRecord(e, NodeOptions{Operands: c.operand()})
		c.try(err)
		_, err = g.EventWait(e, NodeOptions{Operands: c.operand()})
		c.try(err)
		c.try(e.Close())
	}
	c.semaphores(g)
	condition, err := g.Condition(0, true)
	c.try(err)
	if condition != nil {
		n, err = g.Conditional(condition, cuda.If, 2, NodeOptions{Operands: c.operand()})
		c.try(err)
		if n != nil {
			_, err = n.Bodies()[1].Empty(NodeOptions{Operands: c.operand()})
			c.try(err)
		}
	}
	c.try(g.Close())
}

// semaphores adds and changes nodes of a semaphore.
func (c *scenario) semaphores(g *Graph) {
	f, _ := semaphorePage()
	e, err := c.ctx.ImportSemaphore(int(f.Fd()), true)
	c.try(err)
	c.try(f.Close())
	if e == nil {
		return
	}
	for _, waits := range []bool{false, true} {
		p := cuda.SemaphoreParams{Semaphore: e, IsWait: waits}
		n, err := g.Semaphore(p, NodeOptions{Operands: c.operand()})
		c.try(err)
		if n != nil {
			c.try(n.UpdateSemaphore(p, c.operand()))
		}
	}
	c.try(e.Close())
}

func (c *scenario) launch(s *cuda.Stream) {
	g, err := New(c.ctx, Options{})
	if err != nil {
		c.try(err)
		return
	}
	_, err = g.Host(hostFunc(func() {}), NodeOptions{Name: "call", Operands: c.operand()})
	c.try(err)
	x, err := g.Instantiate(ExecOptions{Nothing: hostFunc(func() {}).Fn})
	c.try(err)
	c.try(g.Close())
	if x == nil {
		return
	}
	c.try(x.Upload(s))
	c.try(x.Launch(s))
	c.try(x.Launch(c.ctx.WrapStream(s.Handle())))
	if call := x.Node("call"); call != nil {
		for range 2 {
			c.try(call.UpdateHost(hostFunc(func() {}), c.operand()))
			c.try(x.Launch(s))
			before, _ := call.IsEnabled()
			_, err := call.SetEnabled(!before)
			c.try(err)
			after, _ := call.IsEnabled()
			c.want((err == nil) == (before != after), "enabled by SetEnabled")
		}
	}
	c.updateWhole(x)
	// Before the wrapped stream's handle goes, and with it what a mark needs.
	Reaper().Flush(patience)
	c.try(x.Close())
}

// updateWhole gives x the operands of another graph, or leaves it as it is.
func (c *scenario) updateWhole(x *Exec) {
	g, err := New(c.ctx, Options{})
	if err != nil {
		c.try(err)
		return
	}
	_, err = g.Host(hostFunc(func() {}), NodeOptions{Name: "call", Operands: c.operand()})
	c.try(err)
	if err == nil && x.Node("call") != nil {
		before, after := x.Retainers(), g.Retainers()
		err = x.Update(g)
		c.try(err)
		if err == nil {
			before = after
		}
		c.want(slices.Equal(before, x.Retainers()), "operands after Update")
	}
	c.try(g.Close())
}

func (c *scenario) capture(s *cuda.Stream) {
	capture, err := Begin(s, cuda.CaptureRelaxed, Options{})
	if err != nil {
		c.try(err)
		return
	}
	c.try(recordHost(capture, s, "call", hostFunc(func() {}), c.operand()))
	c.try(capture.Keep(c.operand()))
	c.embed(capture, s)
	g, err := capture.End()
	c.try(err)
	if g != nil {
		c.try(g.Close())
	}
	c.try(capture.Abort()) // where the driver did not end it
}

// embed launches into a capture.
func (c *scenario) embed(capture *Capture, s *cuda.Stream) {
	g, err := New(c.ctx, Options{})
	if err != nil {
		c.try(err)
		return
	}
	_, err = g.Host(hostFunc(func() {}), NodeOptions{Operands: c.operand()})
	c.try(err)
	if x, err := g.Instantiate(ExecOptions{}); err != nil {
		c.try(err)
	} else {
		c.try(embedIn(x, capture, s))
		c.try(x.Close())
	}
	c.try(g.Close())
}

// lines does what the border does with the line of a stream. What is to run
// after work runs, whatever fails.
func (c *scenario) lines(s *cuda.Stream) {
	work := hostFunc(func() {})
	for _, s := range []*cuda.Stream{s, c.ctx.WrapStream(s.Handle())} {
		l, err := NewLine(s, LineOptions{})
		if err != nil {
			c.try(err)
			continue
		}
		queued := s.LaunchHostFunc(work.Fn, 1)
		c.try(queued)
		_, err = l.Marked()
		c.order(err)
		k := c.operand()[0].Retainer
		l.AfterAll(k.Release)
		into, err := c.ctx.NewStream(cuda.StreamOptions{})
		c.try(err)
		if into != nil {
			c.order(l.Join(l.Queued(), into))
			c.try(into.Close())
		}
		l.Prove()
		k = c.operand()[0].Retainer
		l.Close(func() error { k.Release(); return nil })
		// Before the wrapped stream's handle goes.
		Reaper().Flush(patience)
	}
}

// order is try for errors that say what a failure means for a line.
func (c *scenario) order(err error) {
	if !errors.Is(err, ErrLineCapturing) && !errors.Is(err, errUnmarked) {
		c.try(err)
	}
}

// driverCalls are those that the scenario makes, and what their failure leaves
// behind in package cuda, which cannot give anything back without them.
var driverCalls = []struct {
	name   string
	leaves bool
}{
	{name: "cuCtxGetCurrent", leaves: true},
	{name: "cuCtxPushCurrent", leaves: true},
	{name: "cuStreamCreateWithPriority"},
	{name: "cuStreamDestroy", leaves: true},
	{name: "cuStreamIsCapturing"},
	{name: "cuStreamBeginCapture"},
	{name: "cuStreamGetCaptureInfo"},
	{name: "cuStreamUpdateCaptureDependencies"},
	{name: "cuStreamEndCapture"},
	{name: "cuThreadExchangeStreamCaptureMode"},
	{name: "cuLaunchHostFunc"},
	{name: "cuEventCreate"},
	{name: "cuStreamWaitEvent"},
	{name: "cuEventRecord"},
	{name: "cuEventQuery"},
	{name: "cuEventDestroy", leaves: true},
	{name: "cuGraphCreate"},
	{name: "cuGraphClone"},
	{name: "cuGraphDestroy"},
	{name: "cuGraphNodeFindInClone"},
	{name: "cuGraphAddHostNode"},
	{name: "cuGraphAddEmptyNode"},
	{name: "cuGraphAddChildGraphNode"},
	{name: "cuGraphAddMemAllocNode"},
	{name: "cuGraphAddMemFreeNode"},
	{name: "cuGraphAddEventRecordNode"},
	{name: "cuGraphAddEventWaitNode"},
	{name: "cuGraphConditionalHandleCreate"},
	{name: "cuGraphAddNode"},
	{name: "cuGraphHostNodeSetParams"},
	{name: "cuGraphDestroyNode"},
	{name: "cuGraphAddDependencies"},
	{name: "cuGraphRemoveDependencies"},
	{name: "cuGraphGetNodes"},
	{name: "cuGraphGetEdges"},
	{name: "cuGraphNodeGetType"},
	{name: "cuGraphInstantiateWithParams"},
	{name: "cuGraphUpload"},
	{name: "cuGraphLaunch"},
	{name: "cuGraphExecHostNodeSetParams"},
	{name: "cuGraphExecUpdate"},
	{name: "cuGraphExecDestroy"},
}

// Each driver call fails at its first, second, … occurrence, also on the
// reaper's thread.
func TestEveryDriverCallMayFail(t *testing.T) {
	ctx := open(t)
	failing.Store(true)
	codes := []cuda.Result{cuda.ErrorOutOfMemory, cuda.ErrorUnknown, cuda.ErrorStreamCaptureUnsupported}
	for _, call := range driverCalls {
		for _, code := range codes {
			failEach(t, ctx, call.name, code, call.leaves)
		}
	}
}

func failEach(t *testing.T, ctx *cuda.Context, call string, code cuda.Result, leaves bool) {
	drv := ctx.Driver()
	for n, tries := 1, 20; ; n++ {
		c := &scenario{ctx: ctx}
		before := drv.Live()
		drv.FailCall(call, n, code)
		c.run()
		flushed := Reaper().Flush(patience)
		if drv.ClearFaults() {
			// Work that is over by chance need not be joined: cuStreamWaitEvent.
			if tries--; n == 1 && tries > 0 {
				n = 0
				continue
			}
			require.Greater(t, n, 1, "%s was never called", call)
			return
		}
		require.True(t, flushed, "%s %d, %v", call, n, code)
		require.Empty(t, c.wrong, "%s %d, %v", call, n, code)
		for _, err := range c.errs {
			require.ErrorIs(t, err, code, "%s %d, %v", call, n, code)
		}
		for _, k := range c.all {
			require.True(t, k.isReleased(), "%s %d, %v", call, n, code)
		}
		require.Empty(t, Live(), "%s %d, %v", call, n, code)
		drv.Drain()
		if !leaves {
			require.Equal(t, before, drv.Live(), "%s %d, %v", call, n, code)
		}
	}
}
