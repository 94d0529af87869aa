// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// patience is how long a test waits for what must happen; nothing depends on
// how soon it does.
const patience = 30 * time.Second

// hostFuncs stand for C functions: the simulated driver calls them by number.
var hostFuncs struct {
	sync.Mutex
	next uintptr
	by   map[uintptr]func(data uintptr)
}

func callHost(fn, data uintptr) {
	hostFuncs.Lock()
	f := hostFuncs.by[fn]
	hostFuncs.Unlock()
	f(data)
}

// hostFunc returns the address that stands for f.
func hostFunc(f func()) cuda.HostParams {
	return hostFuncOf(func(uintptr) { f() })
}

// hostFuncOf is hostFunc for a function that gets its UserData.
func hostFuncOf(f func(data uintptr)) cuda.HostParams {
	hostFuncs.Lock()
	defer hostFuncs.Unlock()
	if hostFuncs.by == nil {
		hostFuncs.by = make(map[uintptr]func(uintptr))
	}
	hostFuncs.next++
	fn := 0x1000 + 16*hostFuncs.next
	hostFuncs.by[fn] = f
	return cuda.HostParams{Fn: fn, UserData: 1}
}

// failing is set by a test that makes driver calls fail. The checks at its end
// then leave out what package cuda does about that.
var failing atomic.Bool

// open returns a context of a fresh simulated driver. When the test ends,
// nothing of this package may be left.
func open(t testing.TB) *cuda.Context {
	t.Helper()
	drv, err := cuda.Open(cuda.Options{Driver: "sim", CallHost: callHost})
	require.NoError(t, err)
	dev, err := drv.Device(0)
	require.NoError(t, err)
	ctx, err := dev.Context()
	require.NoError(t, err)
	var warnings []error
	var mu sync.Mutex
	OnWarning(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if !failing.Load() {
			warnings = append(warnings, err)
		}
	})
	t.Cleanup(func() {
		require.True(t, Reaper().Flush(patience), "the reaper still waits")
		require.Empty(t, Live())
		lines.mu.Lock()
		left := len(lines.by)
		lines.mu.Unlock()
		require.Zero(t, left, "lines with something pending")
		mu.Lock()
		defer mu.Unlock()
		require.Empty(t, warnings)
		OnWarning(nil)
		live := drv.Live()
		delete(live, "MemoryPool")
		if !failing.Swap(false) {
			require.Empty(t, live)
		}
		require.NoError(t, drv.Close())
	})
	return ctx
}

func newStream(t testing.TB, ctx *cuda.Context) *cuda.Stream {
	t.Helper()
	s, err := ctx.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// buffers allocates n pinned buffers of size bytes.
func buffers(t testing.TB, ctx *cuda.Context, n int, size uint64) []*cuda.Buffer {
	t.Helper()
	mr, err := cuda.NewPinnedMemoryResource(ctx.Device())
	require.NoError(t, err)
	var list []*cuda.Buffer
	for range n {
		b, err := mr.Allocate(size, nil)
		require.NoError(t, err)
		t.Cleanup(func() { _ = b.Close() })
		list = append(list, b)
	}
	return list
}

// A token is a Retainer that knows how often it was released.
type token struct {
	name     string
	released atomic.Int64
	at       func() // called by Release
}

func (k *token) Release() {
	if k.released.Add(1) > 1 {
		panic("released twice: " + k.name)
	}
	if k.at != nil {
		k.at()
	}
}

func (k *token) isReleased() bool { return k.released.Load() == 1 }

// operands makes one operand of each token.
func operands(tokens ...*token) []Operand {
	var list []Operand
	for _, k := range tokens {
		list = append(list, Operand{Name: k.name, Object: k, NBytes: 8, Reason: "test", Retainer: k})
	}
	return list
}

func tokens(n int) []*token {
	list := make([]*token, n)
	for i := range list {
		list[i] = &token{name: fmt.Sprint("op", i)}
	}
	return list
}

// A hostGate is a host function that waits: while it is shut, the launch that has
// reached it is under way.
type hostGate struct {
	cuda.HostParams
	entered chan struct{} // one value for each launch that has reached it
	opened  chan struct{}
	once    sync.Once
}

func newGate(t testing.TB) *hostGate {
	g := &hostGate{entered: make(chan struct{}, 1<<16), opened: make(chan struct{})}
	g.HostParams = hostFunc(func() {
		g.entered <- struct{}{}
		<-g.opened
	})
	t.Cleanup(g.open)
	return g
}

func (g *hostGate) open() { g.once.Do(func() { close(g.opened) }) }

// steps lets the reaper step what it has at least twice, and so do what it can.
func steps(t testing.TB) {
	t.Helper()
	for range 2 {
		done := make(chan struct{})
		require.True(t, Reaper().Add(stepFunc(func() (bool, error) { close(done); return true, nil })))
		<-done
	}
}

type stepFunc func() (bool, error)

func (f stepFunc) Step() (bool, error) { return f() }

// eventually waits for what must become true.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(50 * time.Microsecond) {
		require.True(t, time.Now().Before(deadline), "never: "+what)
	}
}

func released(t testing.TB, tokens ...*token) {
	t.Helper()
	for _, k := range tokens {
		require.True(t, k.isReleased(), "%s is still held", k.name)
	}
}

func kept(t testing.TB, tokens ...*token) {
	t.Helper()
	for _, k := range tokens {
		require.Zero(t, k.released.Load(), "%s was released too early", k.name)
	}
}

func eventuallyReleased(t testing.TB, tokens ...*token) {
	t.Helper()
	eventually(t, "released", func() bool {
		return !slices.ContainsFunc(tokens, func(k *token) bool { return !k.isReleased() })
	})
}

// A mirror is a multiset of what OnBundle has told.
type mirror struct {
	mu sync.Mutex
	n  map[Retainer]int
}

func (m *mirror) apply(list []Operand, held bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n == nil {
		m.n = make(map[Retainer]int)
	}
	for _, o := range list {
		if o.Retainer != nil {
			m.change(o.Retainer, held)
		}
	}
}

// Preconditions: m.mu is held.
func (m *mirror) change(r Retainer, held bool) {
	if held {
		m.n[r]++
		return
	}
	m.n[r]--
	if m.n[r] < 0 {
		panic("removed what was not there")
	}
	if m.n[r] == 0 {
		delete(m.n, r)
	}
}

func (m *mirror) holds(t testing.TB, tokens ...*token) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	want := make(map[Retainer]int)
	for _, k := range tokens {
		want[k]++
	}
	require.True(t, maps.Equal(want, m.n), "want %v, got %v", want, m.n)
}

// names returns the operands' names in list.
func names(list []Retained) []string {
	var out []string
	for _, r := range list {
		out = append(out, r.Node+":"+r.Operand)
	}
	return out
}
