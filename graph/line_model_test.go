// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// A model is a small specification of a line, together with the line itself. All work
// is host functions that wait until the model lets them run, so the model knows
// what has ended. What it requires, after each step:
//
//   - Proven ≤ Marked ≤ Queued, Proven never falls, and OnProven has told of it;
//   - nothing is said to have ended that has not: by Proven, by After, by
//     AfterAll also of what others have queued, and by Join in the other stream;
//   - Mark covers all that is queued, unless the stream is capturing;
//   - a capture is what it would be without the line;
//
// and in the end that all is proven, that each After has run once, and that the
// line is gone.
type model struct {
	t    *testing.T
	ctx  *cuda.Context
	rnd  *rand.Rand
	seed uint64
	kind lineKind
	s    *cuda.Stream // whose line it is
	own  *cuda.Stream // the same handle, where we made it
	into *cuda.Stream // waits by Join
	line *Line

	work  cuda.HostParams
	check cuda.HostParams

	mu      sync.Mutex
	moved   sync.Cond
	allowed uint64        // guarded by mu; works up to this number may run
	ended   atomic.Uint64 // works up to this number have run
	early   atomic.Int64  // what was said to have ended too early

	queued  uint64   // works so far, those of others included
	works   []uint64 // by position: the latest work that it covers
	proven  uint64
	told    atomic.Uint64 // by OnProven
	capture *Capture
	exposed bool
	cover   *cuda.Event // for Behind, or nil
	covered uint64      // how far it was recorded
	armed   bool        // a driver call will fail
	waiting atomic.Int64
}

type lineKind int

const (
	newLineOfOwn lineKind = iota
	lineOfOwn
	lineOfForeign
	lineOfLegacy
	lineOfThread
	lineKinds
)

// armFault makes one of the driver calls that lines make fail, once; disarm
// undoes that. They are nil where the build has no faults.
var armFault, disarmFaults func(*cuda.Driver, *rand.Rand)

func newModel(t *testing.T, ctx *cuda.Context, seed uint64) *model {
	m := &model{t: t, ctx: ctx, rnd: rand.New(rand.NewPCG(seed, 3)), seed: seed, works: []uint64{0}}
	m.moved.L = &m.mu
	t.Cleanup(func() { m.allow(m.queued) }) // where the test has failed
	m.kind = lineKind(m.rnd.IntN(int(lineKinds)))
	m.work = hostFuncOf(func(n uintptr) {
		m.mu.Lock()
		for m.allowed < uint64(n) {
			m.moved.Wait()
		}
		m.mu.Unlock()
		m.ended.Store(uint64(n))
	})
	m.check = hostFuncOf(func(n uintptr) { m.mustHaveEnded(uint64(n)) })
	var err error
	m.into, err = ctx.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	m.own, err = ctx.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	m.s = m.own
	switch m.kind {
	case lineOfForeign:
		m.s = ctx.WrapStream(m.own.Handle())
	case lineOfLegacy:
		m.s = ctx.DefaultStream(cuda.Legacy)
	case lineOfThread:
		m.s = ctx.DefaultStream(cuda.PerThread)
	case newLineOfOwn:
		m.line, err = NewLine(m.s, LineOptions{OnProven: func(n uint64) { m.told.Add(n) }})
		require.NoError(t, err)
	}
	if m.line == nil {
		m.line = LineOf(m.s)
		m.line.onProven = func(n uint64) { m.told.Add(n) }
		// Default streams have had other models: their positions are no matter.
		m.works = make([]uint64, m.line.Queued()+1)
		m.proven = m.line.Proven()
		m.told.Store(m.proven)
	}
	return m
}

func (m *model) mustHaveEnded(n uint64) {
	if m.ended.Load() < n {
		m.early.Add(1)
	}
}

// allow lets n more works run.
func (m *model) allow(n uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.allowed = min(m.allowed+n, m.queued)
	m.moved.Broadcast()
}

// launch puts a work into the stream.
func (m *model) launch() {
	m.queued++
	require.NoError(m.t, m.s.LaunchHostFunc(m.work.Fn, uintptr(m.queued)))
}

// at notes that a position covers what is queued now. A failed Marked has
// nothing to note.
func (m *model) at(pos uint64) {
	require.Equal(m.t, uint64(len(m.works)), pos)
	m.works = append(m.works, m.queued)
}

func (m *model) shared() bool { return m.kind >= lineOfForeign }

// position picks one, most often a late one.
func (m *model) position() uint64 {
	last := len(m.works) - 1
	if m.rnd.IntN(3) == 0 {
		return uint64(last)
	}
	return uint64(last - m.rnd.IntN(min(last, 20)+1))
}

// steps are what a model does, by weight.
var modelSteps = []struct {
	weight int
	do     func(*model)
}{
	{12, (*model).queue},
	{2, (*model).queueOfOthers},
	{10, func(m *model) { m.allow(uint64(m.rnd.IntN(4))) }},
	{6, (*model).mark},
	{6, func(m *model) { m.line.Prove() }},
	{1, func(*model) { ProveAll() }},
	{1, func(*model) { LookAll() }},
	{1, (*model).wait},
	{6, (*model).after},
	{3, (*model).afterAll},
	{3, (*model).join},
	{2, (*model).beginOrEnd},
	{1, (*model).expose},
	{3, (*model).record},
	{1, (*model).behind},
	{2, func(*model) { runtime.Gosched() }},
}

func (m *model) step() {
	sum := 0
	for _, s := range modelSteps {
		sum += s.weight
	}
	if armFault != nil && m.rnd.IntN(8) == 0 && !(m.shared() && m.capture != nil) {
		m.armed = true
		if m.shared() {
			m.allow(m.queued + 1) // who cannot record waits
		}
		armFault(m.ctx.Driver(), m.rnd)
	}
	n := m.rnd.IntN(sum)
	for _, s := range modelSteps {
		if n -= s.weight; n < 0 {
			s.do(m)
			break
		}
	}
	if m.armed {
		disarmFaults(m.ctx.Driver(), m.rnd)
		m.armed = false
	}
	m.invariants()
}

func (m *model) invariants() {
	proven := m.line.Proven()
	marked := m.line.marked.Load()
	require.GreaterOrEqual(m.t, proven, m.proven)
	require.LessOrEqual(m.t, marked, m.line.Queued())
	require.LessOrEqual(m.t, proven, m.line.Queued())
	require.Equal(m.t, uint64(len(m.works)-1), m.line.Queued())
	require.GreaterOrEqual(m.t, m.ended.Load(), m.works[proven], "proven before it had ended")
	require.Zero(m.t, m.early.Load(), "said to have ended too early")
	m.proven = proven
}

// failed requires that err is one of an armed fault.
func (m *model) failed(err error) {
	if err != nil {
		require.True(m.t, m.armed, "%v", err)
		require.ErrorIs(m.t, err, cuda.ErrorOutOfMemory)
	}
}

func (m *model) queue() {
	if m.capture != nil {
		return
	}
	if m.shared() && m.armed {
		m.allow(1)
	}
	m.launch()
	switch {
	case !m.shared() || (m.kind != lineOfThread && m.rnd.IntN(3) == 0):
		m.at(m.line.Advance())
	default:
		m.allowIfArmed()
		pos, err := m.line.Marked()
		m.at(pos)
		m.failed(err)
		if err == nil && !m.armed {
			require.Equal(m.t, pos, m.line.marked.Load())
		}
	}
}

// allowIfArmed lets everything run that may be waited for.
func (m *model) allowIfArmed() {
	if m.armed {
		m.allow(m.queued + 1)
	}
}

// queueOfOthers is work that nobody tells the line of.
func (m *model) queueOfOthers() {
	if m.capture == nil && (m.exposed || m.shared()) {
		m.launch()
	}
}

func (m *model) mark() {
	before := m.line.marked.Load()
	err := m.line.Mark()
	m.failed(err)
	switch {
	case m.capture != nil && !m.armed:
		require.LessOrEqual(m.t, m.line.marked.Load(), max(before, m.line.Proven()))
	case err == nil && !m.armed && !m.shared(): // elsewhere no event may be free
		require.Equal(m.t, m.line.Queued(), m.line.marked.Load())
	}
}

// wait does what the border does after cuStreamSynchronize.
func (m *model) wait() {
	if m.capture != nil {
		return
	}
	m.allow(m.queued + 1)
	pos := m.line.Queued()
	require.NoError(m.t, m.s.Synchronize())
	m.line.Proved(pos)
	require.False(m.t, m.line.Pending(pos))
}

func (m *model) after() {
	pos := m.position()
	m.expect(m.works[pos], func(then func()) { m.line.After(pos, then) })
}

func (m *model) afterAll() {
	m.allowIfArmed()
	m.expect(m.queued, func(then func()) { m.line.AfterAll(then) })
	m.at(m.line.Queued())
}

// expect has call run something once, when a work has ended.
func (m *model) expect(work uint64, call func(func())) {
	m.waiting.Add(1)
	var once atomic.Bool
	call(func() {
		m.mustHaveEnded(work)
		if once.Swap(true) {
			m.early.Add(1)
		}
		m.waiting.Add(-1)
	})
}

func (m *model) join() {
	pos := m.position()
	covered := pos <= m.line.marked.Load()
	unmarked := m.shared() && !covered // then an event must be free
	err := m.line.Join(pos, m.into)
	if errors.Is(err, ErrLineCapturing) {
		require.True(m.t, m.capture != nil || m.armed)
		require.False(m.t, covered && !m.armed)
		return
	}
	if errors.Is(err, errUnmarked) {
		// A failure has taken the mark, or no event is free.
		require.True(m.t, armFault != nil || unmarked)
		return
	}
	m.failed(err)
	if err == nil {
		require.NoError(m.t, m.into.LaunchHostFunc(m.check.Fn, uintptr(m.works[pos])))
	}
}

func (m *model) beginOrEnd() {
	if m.kind == lineOfLegacy || m.armed {
		return
	}
	if m.capture == nil {
		var err error
		m.capture, err = Begin(m.s, cuda.CaptureRelaxed, Options{})
		require.NoError(m.t, err)
		return
	}
	nodes := m.rnd.IntN(3)
	for range nodes {
		require.NoError(m.t, recordHost(m.capture, m.s, "", m.check, nil))
	}
	g, err := m.capture.End()
	m.capture = nil
	require.NoError(m.t, err)
	require.Len(m.t, g.Nodes(), nodes)
	require.NoError(m.t, g.Close())
}

func (m *model) expose() {
	if m.rnd.IntN(20) == 0 {
		m.line.Expose()
		m.exposed = true
	}
}

// record does what the border does behind work that keeps something.
func (m *model) record() {
	if !m.exposed || m.shared() || m.capture != nil {
		return
	}
	if m.cover == nil {
		var err error
		if m.cover, err = m.ctx.TakeEvent(true); err != nil {
			m.failed(err)
			return
		}
	}
	pos := m.line.Queued()
	err := m.s.Record(m.cover)
	m.failed(err)
	if m.covered = pos; err != nil {
		m.covered = 0
	}
}

func (m *model) behind() {
	if m.cover != nil {
		m.line.Behind(m.covered, m.cover)
		m.cover, m.covered = nil, 0
	}
}

// end ends the work and the line, in either order.
func (m *model) end() {
	if m.capture != nil {
		m.beginOrEnd()
	}
	m.behind()
	if m.rnd.IntN(2) == 0 {
		m.allow(m.queued)
	}
	if m.kind == lineOfLegacy || m.kind == lineOfThread {
		m.line.Prove()
	} else {
		m.closeLine()
	}
	m.allow(m.queued)
	if m.exposed || m.shared() {
		// Where the reaper may not record.
		eventually(m.t, "proven", func() bool { m.line.Prove(); return !m.line.Pending(m.line.Queued()) })
	}
	require.True(m.t, Reaper().Flush(patience))
	m.invariants()
	require.False(m.t, m.line.Pending(m.line.Queued()))
	require.Zero(m.t, m.waiting.Load())
	require.Equal(m.t, m.line.Queued(), m.told.Load())
	require.Equal(m.t, m.line.Queued(), m.line.marked.Load())
	require.NoError(m.t, m.s.Close())
	require.NoError(m.t, m.own.Close())
	require.NoError(m.t, m.into.Synchronize())
	require.NoError(m.t, m.into.Close())
	require.True(m.t, Reaper().Flush(patience))
	require.Zero(m.t, m.early.Load())
	live := m.ctx.Driver().Live()
	require.Zero(m.t, live["Stream"]+live["Event"], "%v", live)
}

func (m *model) closeLine() {
	if m.rnd.IntN(2) == 0 && m.kind != lineOfForeign {
		require.NoError(m.t, m.own.Close()) // which closes the line
		return
	}
	last := m.works[m.line.Queued()]
	m.expect(last, func(then func()) {
		m.line.Close(func() error { then(); return m.s.Close() })
	})
}

func TestLineModel(t *testing.T) {
	// The per-thread default stream is this thread's.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	seeds := []uint64{1, 2, 3, uint64(time.Now().UnixNano())}
	for _, first := range seeds {
		t.Run(fmt.Sprint("seed=", first), func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ctx := open(t)
			failing.Store(armFault != nil)
			for i := range uint64(rounds(100)) {
				m := newModel(t, ctx, first+i)
				for range 300 {
					m.step()
				}
				m.end()
				if t.Failed() {
					return
				}
			}
		})
	}
}
