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

	turn sync.Mutex // whoever uses the capture
	list []Added    // guarded by turn
}

func (f *fills) Stop() []Added {
	f.turn.Lock()
	list := f.list
	f.list = nil
	return list
}

func (f *fills) Resume() { f.turn.Unlock() }

// record fills b and notes it; known says whether the node's handle is noted.
func (f *fills) record(t *testing.T, value uint32, known bool, ops []Operand) {
	f.turn.Lock()
	defer f.turn.Unlock()
	require.NoError(t, cuda.Memset(f.b.Ptr(), value, 1, f.b.Size(), f.s))
	info, err := f.s.CaptureInfo()
	require.NoError(t, err)
	a := Added{Kind: cuda.MemsetNode, Params: cuda.MemsetParams{Value: value}, Operands: ops, Site: value}
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
	f := finder{handles: []cuda.NodeHandle{5, 6, 7, 8}}
	for _, h := range []int{0, 1, 1, 2, 0, 3, 1, 0} {
		require.Equal(t, h, f.find(cuda.NodeHandle(5+h)))
	}
}
