// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/internal/finalize"
)

// A Line is the timeline of one stream: how much work was queued in it, and how
// much of that is known to have completed. It alone answers whether work may
// still be in flight, and the answer is yes until the opposite is proven.
//
// Positions number the work of a stream. Work gets the next position once the
// driver has accepted it. Three positions describe the state:
//
//	Proven ≤ Marked ≤ Queued
//
// Work up to Proven has completed. Work up to Marked is covered: an event of
// the line was recorded behind it. Work up to Queued is in the stream.
//
// # Why it is true
//
// A mark is an event with the position that Queued had before the event was
// recorded. All work up to that position was in the stream already, so the
// event is behind it, and once the event has completed so has that work.
// Threads that queue at the same time may get their positions in a different
// order than the driver got their work; but whatever has a position is in the
// stream. An event is recorded under the lock that also guards its position, so
// the two always match.
//
// The line of a stream of our own has two events. The mark with the lower
// position is never recorded again before it has completed, so Proven advances
// even if a thread marks all the time. The other event may be: its old position
// is then covered by the new one, which is higher.
//
// Streams of other libraries and the default streams are shared: others queue
// work there too, and their handle may mean several streams (the per-thread
// default stream) or a stream that no longer exists. There each mark has its
// own event, recorded right after the work by the thread that queued it, and
// the marks complete one by one, oldest first: see [Line.Marked]. An owner may
// instead record one event again behind each work, in the same stream, and let
// the line have it when it looks: LineOptions.Latest.
//
// # Who records
//
// Threads that use the stream, and the reaper. The reaper records only while
// nobody else has the handle, because a record while another library begins a
// capture crashes NVIDIA's driver; a lock of package cuda excludes it during
// our own. An event of a line is never recorded in a capture, so it can always
// be queried.
//
// # Its states
//
//	private → exposed     Expose: others have the handle
//	either → closing      Close: nobody queues any more
//	closing → closed      Proven = Queued: the events go, the handle may
//
// Safe for concurrent use. No call blocks unless it says so.
type Line struct {
	s         *cuda.Stream
	raw       *cuda.Stream // the same handle, usable after s is closed
	done      func()       // ends the use of s; nil for streams that are not ours
	shared    bool         // immutable; see needsMark
	perThread bool         // immutable; the handle stands for a stream of each thread
	kept      bool         // immutable; listed from NewLine until closed
	reaper    *finalize.Reaper
	onProven  func(uint64)
	latest    func() (uint64, *cuda.Event)

	// Queued is advanced by the thread that queues; the others only with mu held.
	queued, proven, marked *atomic.Uint64
	counters               [3]atomic.Uint64 // where they live, unless the owner says otherwise

	listed atomic.Bool  // in lines; see ProveAll
	user   atomic.Int64 // the OS thread that used the line last

	// Held across driver calls. Even recording an event can wait there: for a
	// thread that instantiates a graph, and that one for a callback. So a thread
	// that has the GIL takes it only while no Python callback exists.
	mu       sync.Mutex
	exposed  bool    // guarded by mu
	awaiting bool    // guarded by mu; all work of the context is waited for
	lacking  uint64  // guarded by mu; up to where a user of the stream could record no mark
	slots    [2]slot // guarded by mu; of a stream of our own
	marks    []mark  // guarded by mu; of a shared or exposed stream, oldest first
	last     string  // guarded by mu; the latest error reported, so that it is reported only once

	// How far advanceProven has come. It is behind Proven if [Line.Proved] found
	// mu held. Written with mu held.
	noted atomic.Uint64

	// Never held across a driver call: fine with the GIL. Taken after mu, if both
	// are.
	ask     sync.Mutex
	closing bool           // guarded by ask
	closed  bool           // written with both held: either is enough to read it
	stepped bool           // guarded by ask; the reaper steps the line
	waiters []waiter       // guarded by ask; in the order of After
	moving  int            // guarded by ask; how many are under way from one holder to the next
	moved   sync.Cond      // of ask; moving has become 0
	thens   []func() error // guarded by ask
}

// unlock ends the use of mu, and does what Proved could not do meanwhile.
func (l *Line) unlock() {
	l.mu.Unlock()
	l.noteProven()
}

// noteProven does what follows from an advanced Proven, unless mu is held: then
// its holder does it when unlocking.
func (l *Line) noteProven() {
	for l.noted.Load() < l.Proven() && l.mu.TryLock() {
		l.advanceProven(l.proven.Load())
		l.mu.Unlock()
	}
}

// atLeast makes a counter at least n.
func atLeast(counter *atomic.Uint64, n uint64) {
	for old := counter.Load(); old < n && !counter.CompareAndSwap(old, n); old = counter.Load() {
	}
}

// A waiter is one call of After.
type waiter struct {
	pos  uint64
	then func()
}

// A Use is the latest position in a line at which something was queued.
type Use struct {
	Line *Line
	Pos  uint64
}

// Pending reports whether the work may be in flight.
func (u Use) Pending() bool { return u.Line.Pending(u.Pos) }

// LineOptions are the owner's part of a [Line].
type LineOptions struct {
	// Queued, Proven and Marked are where the counters are stored, for readers
	// that cannot call Go. Nil: in the Line. Whoever queues work advances
	// Queued, with [Line.Advance] or directly; only the Line advances Proven
	// and Marked.
	Queued, Proven, Marked *atomic.Uint64
	// Release is called, on any goroutine, once nobody has the Line any more: only
	// then may the memory of the counters go. A closed line still reads them, and
	// who looks at all lines may come to it late. Not called if [NewLine] fails.
	Release func()
	// OnProven is called when n more positions are known to have completed. It
	// runs on any goroutine, with a lock held: it must not block or call back.
	OnProven func(n uint64)
	// Latest takes over the event that users of a shared stream have recorded
	// behind all work up to pos: nil if there is none, or they are recording it
	// now. It is of the context's pool, and may be nil if nobody has one. Called
	// with a lock held, before the line looks at its marks: it must not block.
	Latest func() (pos uint64, e *cuda.Event)
	// Reaper waits on behalf of After and Close. Nil: the one that [Reaper]
	// returns.
	Reaper *finalize.Reaper
}

// ErrLineCapturing says that a stream is capturing, so that no event can be
// recorded behind its work.
var ErrLineCapturing = errors.New("the stream is capturing, and no event follows the work in it yet")

// needsMark reports whether s is shared, so that the thread that queues work in
// it must record an event at once. The per-thread default stream is a different
// stream in each thread, a stream of another library may no longer exist later,
// and in all of them others may begin a capture.
func needsMark(s *cuda.Stream) bool { return s.IsForeign() || s.IsDefault() }

// NewLine makes a line of s, which becomes the one that [LineOf] returns unless
// NewLine has made one before. It keeps the handle of a stream of our own valid
// until the line is closed. It creates events, so it may block: not with the
// GIL.
//
// Lifetime: the caller closes the line, or closes s, which does that.
//
// Errors: [cuda.ErrClosed]; an [*cuda.Error].
func NewLine(s *cuda.Stream, o LineOptions) (*Line, error) {
	l, err := newLine(s, o)
	if err != nil {
		return nil, err
	}
	l.kept = true
	if err := l.createEvents(); err != nil {
		l.discard()
		return nil, err
	}
	if !s.OnClose(func() { l.Close(nil) }) {
		l.discard()
		return nil, &cuda.ClosedError{What: s.String()}
	}
	lines.mu.Lock()
	if old, ok := s.Companion().(*Line); !ok || !old.kept {
		s.SetCompanion(l)
	}
	lines.mu.Unlock()
	l.list()
	if o.Release != nil {
		runtime.AddCleanup(l, func(release func()) { release() }, o.Release)
	}
	return l, nil
}

// LineOf returns the line of s: that of [NewLine], or one made by the first
// call, which ends once s is closed and all its work is proven. Making it may
// block as NewLine does.
func LineOf(s *cuda.Stream) *Line {
	if l, ok := s.Companion().(*Line); ok {
		return l
	}
	l, err := newLine(s, LineOptions{})
	if err != nil {
		l.closing, l.closed = true, true // s is closed: nothing can be queued
		return l
	}
	lines.mu.Lock()
	if other, ok := s.Companion().(*Line); ok {
		lines.mu.Unlock()
		l.discard()
		return other
	}
	s.SetCompanion(l)
	lines.mu.Unlock()
	if err := l.createEvents(); err != nil {
		warn(err) // the reaper tries again where it has to
	}
	if !s.OnClose(func() { l.Close(nil) }) {
		l.Close(nil)
	}
	return l
}

// newLine returns a line without events; with an error, an unusable one.
func newLine(s *cuda.Stream, o LineOptions) (*Line, error) {
	l := &Line{s: s, raw: s, reaper: o.Reaper, onProven: o.OnProven, latest: o.Latest, queued: o.Queued, proven: o.Proven, marked: o.Marked}
	l.moved.L = &l.ask
	for i, c := range []**atomic.Uint64{&l.queued, &l.proven, &l.marked} {
		if *c == nil {
			*c = &l.counters[i]
		}
	}
	if l.reaper == nil {
		l.reaper = Reaper()
	}
	l.noted.Store(l.proven.Load())
	l.shared = needsMark(s)
	l.exposed = s.IsExposed()
	l.perThread = s == s.Context().DefaultStream(cuda.PerThread)
	l.user.Store(int64(syscall.Gettid()))
	if s.IsDefault() {
		return l, nil
	}
	l.raw = s.Context().WrapStream(s.Handle())
	if l.shared {
		return l, nil
	}
	_, done, err := s.Use()
	l.done = done
	return l, err
}

// discard undoes newLine and createEvents, for a line that nobody else has seen.
func (l *Line) discard() {
	for _, sl := range l.slots {
		if sl.event != nil {
			_ = sl.event.Close()
		}
	}
	if l.done != nil {
		l.done()
	}
}

// Stream returns the stream.
func (l *Line) Stream() *cuda.Stream { return l.s }

// Advance returns the next position, for work that the driver has just
// accepted. For the per-thread default stream use [Line.Marked] instead.
func (l *Line) Advance() uint64 {
	pos := l.queued.Add(1)
	if !l.listed.Load() {
		l.list()
	}
	return pos
}

// Pending reports whether the work up to pos may be in flight.
func (l *Line) Pending(pos uint64) bool { return pos > l.Proven() }

// Queued returns the position of the latest work.
func (l *Line) Queued() uint64 { return l.read(l.queued) }

// Proven returns the position up to which all work is known to have ended.
func (l *Line) Proven() uint64 { return l.read(l.proven) }

// read reads a counter. It keeps l meanwhile, and so the counter's memory: see
// LineOptions.Release.
func (l *Line) read(counter *atomic.Uint64) uint64 {
	n := counter.Load()
	runtime.KeepAlive(l)
	return n
}

// Expose says that others have the handle from now on, so that the reaper no
// longer records in the stream until the line is closed.
func (l *Line) Expose() {
	l.used()
	l.mu.Lock()
	defer l.unlock()
	l.exposed = true
	l.s.Expose()
}

// used notes that the calling thread uses the stream.
func (l *Line) used() { l.user.Store(int64(syscall.Gettid())) }

// lines are those that ProveAll visits: those of NewLine always, others while
// they have pending work.
var lines struct {
	mu sync.Mutex
	by map[*Line]struct{} // guarded by mu
}

func (l *Line) list() {
	lines.mu.Lock()
	defer lines.mu.Unlock()
	if lines.by == nil {
		lines.by = make(map[*Line]struct{})
	}
	lines.by[l] = struct{}{}
	l.listed.Store(true)
}

// delist removes a line without pending work. A thread that advances it
// meanwhile either sees that it is not listed, or is noticed here.
func (l *Line) delist() {
	lines.mu.Lock()
	l.listed.Store(false)
	delete(lines.by, l)
	lines.mu.Unlock()
	if l.Pending(l.Queued()) {
		l.list()
	}
}

// pendingLines lists the lines that may have pending work.
func pendingLines() []*Line {
	lines.mu.Lock()
	defer lines.mu.Unlock()
	list := make([]*Line, 0, len(lines.by))
	for l := range lines.by {
		if l.Pending(l.Queued()) {
			list = append(list, l)
		}
	}
	return list
}

// LookAll queries the marks of all lines, and has the reaper mark work that has
// none. Unlike ProveAllAside it waits neither for a thread that is stuck in a launch
// nor for a thread that waits for that one: a garbage collection may call it at
// any time, while the launch waits for a Python callback.
func LookAll() {
	for _, l := range pendingLines() {
		l.look()
	}
}

// ProveAll calls [Line.Prove] for every line with pending work. In streams whose
// handles others have it records only if the calling thread was the last to use
// them. It never blocks, so it may be called with the GIL.
func ProveAll() { proveAll((*cuda.Event).Query) }

// ProveAllAside is ProveAll with [Line.ProveAside]: before a garbage collection.
func ProveAllAside() { proveAll((*cuda.Event).QueryAside) }

func proveAll(ask asker) {
	thread := int64(syscall.Gettid())
	for _, l := range pendingLines() {
		l.prove(l.user.Load() == thread, ask)
	}
}
