// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// A witness is an operand whose node looks whether it is still held: at each
// run, from the driver's thread.
type witness struct {
	token
	params cuda.HostParams
}

// A tribunal makes witnesses and remembers them.
type tribunal struct {
	early atomic.Int64
	runs  atomic.Int64
	mu    sync.Mutex
	all   []*witness
}

func (b *tribunal) witness() *witness {
	w := &witness{token: token{name: "witness"}}
	w.params = hostFunc(func() {
		b.runs.Add(1)
		early := w.released.Load()
		runtime.Gosched()
		b.early.Add(early + w.released.Load())
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, w)
	return w
}

func (w *witness) operands() []Operand { return operands(&w.token) }

// verdict requires that every witness was held for long enough, and is not held
// any more.
func (b *tribunal) verdict(t testing.TB) {
	t.Helper()
	require.True(t, Reaper().Flush(patience))
	require.Zero(t, b.early.Load(), "used after release")
	require.NotZero(t, b.runs.Load())
	for _, w := range b.all {
		released(t, &w.token)
	}
}

// unexpected drops the errors that concurrent closing explains.
func unexpected(err error) error {
	if errors.Is(err, cuda.ErrClosed) || errors.Is(err, errCapturing) {
		return nil
	}
	return err
}

func rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// Everybody launches, updates and closes the same executables.
func TestHammerOneExec(t *testing.T) {
	ctx := open(t)
	var jury tribunal
	streams := []*cuda.Stream{newStream(t, ctx), newStream(t, ctx), ctx.DefaultStream(cuda.Legacy)}
	for range rounds(30) {
		first := jury.witness()
		g := hostGraph(t, ctx, first.params, first.operands())
		x := instantiate(t, g, ExecOptions{})
		var wg sync.WaitGroup
		for worker := range 6 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(worker), 1))
				for i := range 40 {
					var err error
					switch {
					case worker == 0 && i == 30:
						err = x.Close()
					case worker == 1 && i == 10:
						err = g.Close()
					case rnd.IntN(3) > 0:
						err = x.Launch(streams[rnd.IntN(len(streams))])
					default:
						w := jury.witness()
						err = x.Node("call").UpdateHost(w.params, w.operands())
					}
					if unexpected(err) != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	for _, s := range streams {
		require.NoError(t, s.Synchronize())
	}
	jury.verdict(t)
}

// Graphs, clones, children, captures, executables and streams come and go on
// many goroutines, which share one graph that is embedded and cloned.
func TestHammerLifetimes(t *testing.T) {
	ctx := open(t)
	var jury tribunal
	w := jury.witness()
	shared := hostGraph(t, ctx, w.params, w.operands())
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			h := hammer{ctx: ctx, jury: &jury, shared: shared, rnd: rand.New(rand.NewPCG(uint64(worker), 2))}
			for range rounds(60) {
				if err := h.round(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, shared.Close())
	jury.verdict(t)
}

type hammer struct {
	ctx    *cuda.Context
	jury   *tribunal
	shared *Graph
	rnd    *rand.Rand
}

// round makes a graph in a random way, runs it in a stream of its own, and
// closes everything in a random order while it runs.
func (h *hammer) round() error {
	s, err := h.ctx.NewStream(cuda.StreamOptions{})
	if err != nil {
		return err
	}
	g, err := h.graph(s)
	if err != nil {
		return err
	}
	x, err := g.Instantiate(ExecOptions{})
	if err != nil {
		return err
	}
	launch := func() error { return x.Launch(s) }
	steps := []func() error{
		launch, launch, launch,
		g.Close,
		s.Close,
		func() error { _ = x.Retained(); _ = h.shared.DOT(nowhere); return nil },
		func() error {
			w := h.jury.witness()
			return x.Nodes()[0].UpdateHost(w.params, w.operands())
		},
		func() error {
			w := h.jury.witness()
			return h.shared.Nodes()[0].UpdateHost(w.params, w.operands())
		},
	}
	h.rnd.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for _, step := range steps {
		if err := unexpected(step()); err != nil {
			return err
		}
	}
	return x.Close()
}

// graph returns a graph whose first node is a host node.
func (h *hammer) graph(s *cuda.Stream) (*Graph, error) {
	w := h.jury.witness()
	if h.rnd.IntN(3) == 0 {
		return h.capture(s, w)
	}
	g, err := New(h.ctx, Options{})
	if err != nil {
		return nil, err
	}
	n, err := g.Host(w.params, NodeOptions{Operands: w.operands()})
	if err != nil {
		return nil, err
	}
	if _, err := g.Child(h.shared, NodeOptions{Deps: []*Node{n}}); err != nil {
		return nil, err
	}
	if h.rnd.IntN(2) == 0 {
		return g, nil
	}
	c, err := g.Clone(Options{})
	return c, errors.Join(err, g.Close())
}

func (h *hammer) capture(s *cuda.Stream, w *witness) (*Graph, error) {
	c, err := Begin(s, cuda.CaptureRelaxed, Options{})
	if err != nil {
		return nil, err
	}
	of, err := CaptureOf(s)
	if err != nil {
		return nil, errors.Join(err, c.Abort())
	}
	if err := recordHost(of, s, "", w.params, w.operands()); err != nil {
		return nil, errors.Join(err, c.Abort())
	}
	return c.End()
}
