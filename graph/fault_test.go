// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// setFault has every driver call ask f first, and return what f returns if that
// is not zero; nil ends it. It is nil itself in a build without fault injection.
var setFault func(f func(call string) int32)

// A scenario makes and uses one of everything. Whatever fails, what it handed
// over is released exactly once, and nothing is left.
type scenario struct {
	ctx  *cuda.Context
	all  []*token
	errs []error
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
	c.launch(s)
	c.capture(s)
	c.try(s.Close())
	StreamClosed(s)
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
		c.try(clone.Close())
	}
	c.try(g.Close())
}

func (c *scenario) launch(s *cuda.Stream) {
	g, err := New(c.ctx, Options{})
	if err != nil {
		c.try(err)
		return
	}
	_, err = g.Host(hostFunc(func() {}), NodeOptions{Name: "call", Operands: c.operand()})
	c.try(err)
	x, err := g.Instantiate(ExecOptions{})
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
		}
	}
	// Before the wrapped stream's handle goes, and with it what a mark needs.
	Reaper().Flush(patience)
	c.try(x.Close())
}

func (c *scenario) capture(s *cuda.Stream) {
	capture, err := Begin(s, cuda.CaptureRelaxed, Options{})
	if err != nil {
		c.try(err)
		return
	}
	c.try(recordHost(capture, s, "call", hostFunc(func() {}), c.operand()))
	c.try(capture.Keep(c.operand()))
	g, err := capture.End()
	c.try(err)
	if g != nil {
		c.try(g.Close())
	}
	c.try(capture.Abort()) // where the driver did not end it
}

// What is meant to fail once fails at the first, the second, … driver call.
func TestEveryDriverCallMayFail(t *testing.T) {
	if setFault == nil {
		t.Skip("fault injection is not built in")
	}
	ctx := open(t)
	failing.Store(true)
	for _, code := range []cuda.Result{cuda.ErrorOutOfMemory, cuda.ErrorUnknown, cuda.ErrorStreamCaptureUnsupported} {
		for n := int64(1); ; n++ {
			c := &scenario{ctx: ctx}
			before := ctx.Driver().Live()
			failed := failNth(n, code, c.run)
			for _, err := range c.errs {
				require.ErrorIs(t, err, code, "%s, call %d", failed, n)
			}
			require.True(t, Reaper().Flush(patience), "%s, call %d", failed, n)
			for _, k := range c.all {
				require.True(t, k.isReleased(), "%v in %s, call %d", code, failed, n)
			}
			require.Empty(t, Live(), "%v in %s, call %d", code, failed, n)
			ctx.Driver().Drain()
			if !leaves[failed] {
				require.Equal(t, before, ctx.Driver().Live(), "%v in %s, call %d", code, failed, n)
			}
			if failed == "" {
				require.Greater(t, n, int64(50))
				break
			}
		}
	}
}

// leaves are the calls whose failure leaves a stream or an event behind, in
// package cuda.
var leaves = map[string]bool{
	"cuCtxGetCurrent": true, "cuCtxPushCurrent": true, "cuEventDestroy": true, "cuStreamDestroy": true,
}

// failNth makes the n-th driver call fail that is made, on any thread, until the
// reaper has done what f gave it. It returns that call's name.
func failNth(n int64, code cuda.Result, f func()) (failed string) {
	var calls atomic.Int64
	var name atomic.Pointer[string]
	fault := func(call string) int32 {
		if calls.Add(1) != n {
			return 0
		}
		name.Store(&call)
		return int32(code)
	}
	setFault(fault)
	defer setFault(nil)
	f()
	Reaper().Flush(patience)
	if p := name.Load(); p != nil {
		return *p
	}
	return ""
}
