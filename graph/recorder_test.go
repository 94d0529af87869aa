// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// fills is a Recorder that fills memory.
type fills struct {
	s *cuda.Stream
	b *cuda.Buffer

	leaves bool // does Leave leave nodes here?

	turn  sync.Mutex // whoever uses the capture
	list  []Added    // guarded by turn
	asked int        // guarded by turn; how often Leave was called
}

func (f *fills) Stop()   { f.turn.Lock() }
func (f *fills) Resume() { f.turn.Unlock() }

func (f *fills) Take() []Added {
	list := f.list
	f.list = nil
	return list
}

func (f *fills) Leave(nodes []cuda.NodeHandle) bool {
	f.asked++
	return f.leaves && slices.EqualFunc(nodes, f.list, func(h cuda.NodeHandle, a Added) bool { return h == a.Handle })
}

// record fills b and notes it; known says whether the node's handle is noted.
func (f *fills) record(t *testing.T, value uint32, known bool, ops []Operand) {
	f.turn.Lock()
	defer f.turn.Unlock()
	require.NoError(t, cuda.Memset(f.b.Ptr(), value, 1, f.b.Size(), f.s))
	info, err := f.s.CaptureInfo()
	require.NoError(t, err)
	a := Added{After: len(f.list) - 1, Kind: cuda.MemsetNode, Params: cuda.MemsetParams{Value: value}, Operands: ops, Site: value}
	if require.Len(t, info.Dependencies, 1); known {
		a.Handle = info.Dependencies[0]
	}
	f.list = append(f.list, a)
}

func recordBy(t *testing.T, ctx *cuda.Context, o Options) (*Capture, *fills) {
	s := newStream(t, ctx)
	f := &fills{s: s, b: buffers(t, ctx, 1, 8)[0]}
	c := begin(t, s, o)
	c.RecordBy(f)
	return c, f
}

func TestARecorderAndTheCaptureTakeTurns(t *testing.T) {
	ctx := open(t)
	var m mirror
	c, f := recordBy(t, ctx, Options{OnBundle: m.apply})
	k := tokens(5)
	f.record(t, 1, true, operands(k[0]))
	f.record(t, 2, true, operands(k[1]))
	require.NoError(t, recordHost(c, f.s, "between", hostFunc(func() {}), operands(k[2])))
	f.record(t, 3, false, operands(k[3]))
	f.record(t, 4, true, operands(k[4]))
	m.holds(t)

	g, err := c.End()
	require.NoError(t, err)
	require.False(t, f.turn.TryLock(), "a capture that has ended keeps the turn")
	m.holds(t, k...)
	require.Equal(t, "memset_0 memset_1 between memset_2 memset_3", nodeNames(g))
	require.Equal(t, cuda.MemsetParams{Value: 2}, g.Node("memset_1").Params())
	require.Equal(t, uint32(4), g.Node("memset_3").Site())
	require.Equal(t, []*Node{g.Node("between")}, g.Node("memset_2").Dependencies())
	require.Nil(t, g.Node("memset_2").Params())
	require.ElementsMatch(t, []string{"memset_0:op0", "memset_1:op1", "between:op2", ":op3", "memset_3:op4"}, names(g.Retained()))
	kept(t, k...)
	require.NoError(t, g.Close())
	released(t, k...)
}

func nodeNames(g *Graph) string {
	var list []string
	for _, n := range g.Nodes() {
		list = append(list, n.Name())
	}
	return strings.Join(list, " ")
}

func TestWhatARecorderHasRecordedIsReleasedWithACaptureThatFails(t *testing.T) {
	ctx := open(t)
	c, f := recordBy(t, ctx, Options{})
	k := tokens(2)
	f.record(t, 1, true, operands(k[0]))
	require.NoError(t, recordHost(c, f.s, "", hostFunc(func() {}), operands(k[1])))
	kept(t, k...)
	require.NoError(t, c.Abort())
	released(t, k...)

	c, f = recordBy(t, ctx, Options{})
	k = tokens(1)
	f.record(t, 1, true, operands(k[0]))
	require.ErrorIs(t, f.s.Synchronize(), cuda.ErrorStreamCaptureUnsupported)
	_, err := c.End()
	require.ErrorIs(t, err, cuda.ErrorStreamCaptureInvalidated)
	released(t, k...)
}

func TestNodesAreLeftToARecorderThatHasAll(t *testing.T) {
	ctx := open(t)
	for _, c := range []struct {
		name      string
		spoil     func(c *Capture, f *fills, k []*token)
		asks      int
		left      int
		discarded bool
	}{
		{name: "alone", asks: 1, left: 2},
		{name: "something kept by the graph as a whole", asks: 1, left: 2, spoil: func(c *Capture, _ *fills, k []*token) {
			require.NoError(t, c.Keep(operands(k[2])))
		}},
		{name: "an operation of the capture", spoil: func(c *Capture, f *fills, k []*token) {
			require.NoError(t, recordHost(c, f.s, "", hostFunc(func() {}), operands(k[2])))
		}},
		{name: "a node that is not known", asks: 1, spoil: func(_ *Capture, f *fills, k []*token) { f.record(t, 3, false, operands(k[2])) }},
		{name: "a node of other code", asks: 1, spoil: func(_ *Capture, f *fills, _ []*token) {
			require.NoError(t, cuda.Memset(f.b.Ptr(), 3, 1, f.b.Size(), f.s))
		}},
		{name: "discarded", discarded: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			capture, f := recordBy(t, ctx, Options{})
			f.leaves = true
			k := tokens(3)
			f.record(t, 1, true, operands(k[0]))
			f.record(t, 2, true, operands(k[1]))
			if c.spoil != nil {
				c.spoil(capture, f, k)
			} else {
				require.NoError(t, capture.Keep(operands(k[2])))
			}
			if c.discarded {
				require.NoError(t, capture.Abort())
				require.Zero(t, f.asked)
				require.Empty(t, f.list)
				released(t, k...)
				return
			}
			g, err := capture.End()
			require.NoError(t, err)
			require.Equal(t, c.asks, f.asked)
			require.Len(t, f.list, c.left)
			if c.left > 0 {
				require.Empty(t, g.Nodes())
				nodes := g.Adopt(nil, f.list)
				require.Equal(t, "memset_0 memset_1", nodeNames(g))
				require.Equal(t, []*Node{nodes[0]}, nodes[1].Dependencies())
			} else {
				require.GreaterOrEqual(t, len(g.Nodes()), 2)
			}
			require.NoError(t, g.Close())
			for _, k := range k[:2] {
				released(t, k)
			}
		})
	}
}

// TestARecorderBesideTheCapture has both record from threads of their own.
func TestARecorderBesideTheCapture(t *testing.T) {
	const each = 200
	ctx := open(t)
	c, f := recordBy(t, ctx, Options{})
	ks, theirs := tokens(each), tokens(each)
	var both sync.WaitGroup
	both.Go(func() {
		for _, k := range ks {
			f.record(t, 1, true, operands(k))
		}
	})
	both.Go(func() {
		for i, k := range theirs {
			require.NoError(t, recordHost(c, f.s, "", hostFunc(func() {}), operands(k)))
			if i%16 == 0 {
				time.Sleep(time.Microsecond)
			}
		}
	})
	both.Wait()
	g, err := c.End()
	require.NoError(t, err)
	require.Len(t, g.Nodes(), 2*each)
	for _, n := range g.Nodes() {
		require.Len(t, n.Retained(), 1, "%v", n)
	}
	require.NoError(t, g.Close())
	released(t, slices.Concat(ks, theirs)...)
}

// TestNodesInAnyOrder reads what a driver names in another order than it was
// recorded, and less or more than that.
func TestNodesInAnyOrder(t *testing.T) {
	list := []Added{{Handle: 1}, {Handle: 0}, {Handle: 2}, {Handle: 3}, {Handle: 3}, {Handle: 9}}
	for _, handles := range [][]cuda.NodeHandle{{1, 2, 3}, {3, 2, 1}, {7, 2, 1, 8, 3}, {2}, nil} {
		known, missing := match(handles, list)
		for i, h := range handles {
			if h > 3 {
				require.Nil(t, known[i])
				continue
			}
			require.Equal(t, h, known[i].Handle)
		}
		all := 0
		for _, a := range known {
			if a != nil {
				all++
			}
		}
		require.Len(t, missing, len(list)-all)
	}
	chain := cuda.Edges{From: []cuda.NodeHandle{5, 6}, To: []cuda.NodeHandle{6, 7}, Data: make([]cuda.EdgeData, 2)}
	require.True(t, isChain([]cuda.NodeHandle{5, 6, 7}, chain))
	require.False(t, isChain([]cuda.NodeHandle{5, 7, 6}, chain))
	require.False(t, isChain([]cuda.NodeHandle{5, 6}, chain))
	require.False(t, isChain([]cuda.NodeHandle{5, 6, 7, 8}, chain))
	chain.Data[1].Type = 1
	require.False(t, isChain([]cuda.NodeHandle{5, 6, 7}, chain))
	require.True(t, isChain([]cuda.NodeHandle{5}, cuda.Edges{}))
	require.True(t, isChain(nil, cuda.Edges{}))
	f := finder{handles: []cuda.NodeHandle{5, 6, 7, 8}}
	for _, h := range []int{0, 1, 1, 2, 0, 3, 1, 0} {
		require.Equal(t, h, f.find(cuda.NodeHandle(5+h)))
	}
}
