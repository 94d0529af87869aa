// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"structs"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/memfd"
)

// An interprocess event is a page that processes share, in a file with those of all
// events of the process that created it: an event that others know is mostly never
// destroyed, and a file of its own would cost a descriptor. Its recordings are
// numbered; the latest number is what a query or wait looks at, and each is
// marked when its stream has come to it.
const (
	eventMagic = 0x76656f676164756 // "vudago.."
	eventMarks = 200               // a recording's mark is reused by the one so many later
)

// eventPage lies in shared memory.
type eventPage struct {
	_         structs.HostLayout
	magic, id uint64
	latest    atomic.Uint64             // number of the latest recording; 0 before the first
	destroyed atomic.Uint64             // by the process that created it
	done      [eventMarks]atomic.Uint64 // the latest recording of each remainder that is complete
	by        [eventMarks]atomic.Uint64 // the process that made it
	lost      [eventMarks]atomic.Uint64 // the latest of each remainder whose work has failed; done then, too
}

// eventBytes is what an event takes of the file: whole pages.
var eventBytes = int64((int(unsafe.Sizeof(eventPage{})) + os.Getpagesize() - 1) / os.Getpagesize() * os.Getpagesize())

// sharedEvent is a process's view of the page, unmapped when nothing refers to
// it any more.
type sharedEvent struct {
	*eventPage
	imported bool
	file     *os.File     // nil if it is another process's
	offset   int64        // in the file
	known    *atomic.Bool // to other processes; not set if imported
}

// eventFile has the pages of the events that this process created. Places in it are
// never used twice; what nobody else knows is given back to the system.
type eventFile struct {
	mu   sync.Mutex
	file *os.File // guarded by mu; nil if there are no events
	next int64    // guarded by mu; where the next page goes
	live int      // guarded by mu; events that are not destroyed

	pages atomic.Int64 // that are mapped, those of other processes too
}

// mostEventPages is a fourth of the mappings that Linux lets a process have
// (vm.max_map_count): without any left it can neither map memory nor start a thread.
const mostEventPages = 1 << 14

// enter counts a page that is to be mapped, or returns an error if there are too
// many. Events that nobody refers to any more leave when Go has collected them.
func (p *eventFile) enter() error {
	for tries := 0; p.pages.Add(1) > mostEventPages; tries++ {
		p.pages.Add(-1)
		if tries == 200 { // two seconds
			return fmt.Errorf("%d events are shared with other processes: %w", mostEventPages, syscall.ENOMEM)
		}
		if tries%20 == 0 {
			runtime.GC() // and then Go unmaps them, one by one
		}
		time.Sleep(10 * latestLook)
	}
	return nil
}

// mapPage maps the page at an offset of a file. The caller calls unmapPage.
func (p *eventFile) mapPage(f *os.File, offset int64) (*sharedEvent, []byte, error) {
	if err := p.enter(); err != nil {
		return nil, nil, err
	}
	mem, err := memfd.Map(f.Fd(), offset, uint64(eventBytes))
	if err != nil {
		p.pages.Add(-1)
		return nil, nil, err
	}
	return &sharedEvent{eventPage: (*eventPage)(unsafe.Pointer(unsafe.SliceData(mem))), offset: offset}, mem, nil
}

func (p *eventFile) unmapPage(mem []byte) {
	_ = syscall.Munmap(mem)
	p.pages.Add(-1)
}

func (p *eventFile) add() (*sharedEvent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		f, err := memfd.Create("cudago simulated events")
		if err != nil {
			return nil, err
		}
		p.file, p.next = f, 0
	}
	e, err := p.page()
	if err != nil {
		p.closeUnused()
		return nil, err
	}
	p.live++
	e.magic, e.id = eventMagic, rand.Uint64()
	return e, nil
}

// page makes a page at the end of the file.
//
// Preconditions: p.mu is held.
func (p *eventFile) page() (*sharedEvent, error) {
	if err := memfd.Grow(p.file, p.next+eventBytes); err != nil {
		return nil, err
	}
	e, mem, err := p.mapPage(p.file, p.next)
	if err != nil {
		return nil, err
	}
	e.file, e.known = p.file, new(atomic.Bool)
	runtime.AddCleanup(e, func(l lostPage) { l.giveBack() }, lostPage{p, mem, p.file, p.next, e.known})
	p.next += eventBytes
	return e, nil
}

// lostPage is a page that nothing in this process refers to: not even a recording
// that is still to be made.
type lostPage struct {
	of     *eventFile
	mem    []byte
	file   *os.File
	offset int64
	known  *atomic.Bool
}

func (l lostPage) giveBack() {
	l.of.unmapPage(l.mem)
	if l.known.Load() { // who has opened it looks there
		return
	}
	if raw, err := l.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { memfd.Free(fd, l.offset, uint64(eventBytes)) })
	}
}

// remove tells other processes that an event is destroyed. Without events there is
// no file; who has opened one of them has it mapped.
func (p *eventFile) remove(e *sharedEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.destroyed.Store(1)
	if p.live--; e.file == p.file {
		p.closeUnused()
	}
}

// closeUnused closes the file if no event is in it.
//
// Preconditions: p.mu is held.
func (p *eventFile) closeUnused() {
	if p.live == 0 {
		_ = p.file.Close()
		p.file = nil
	}
}

// close closes the file with the driver.
func (p *eventFile) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		p.live = 0
		p.closeUnused()
	}
}

// begin numbers a recording.
func (e *sharedEvent) begin() uint64 {
	n := e.latest.Add(1)
	e.by[n%eventMarks].Store(uint64(os.Getpid()))
	return n
}

// finish marks a recording as complete.
func (e *sharedEvent) finish(n uint64) {
	mark := &e.done[n%eventMarks]
	for old := mark.Load(); old < n && !mark.CompareAndSwap(old, n); old = mark.Load() {
	}
}

// lose marks a recording as one that the work before it never came to.
func (e *sharedEvent) lose(n uint64) {
	e.lost[n%eventMarks].Store(n)
	e.finish(n)
}

// lossOf is what a wait for a recording ends with that was lost; nil if it was not.
func (e *sharedEvent) lossOf(n uint64) *failure {
	if n == 0 || e.lost[n%eventMarks].Load() != n {
		return nil
	}
	return &failure{driver.CUDA_ERROR_LAUNCH_FAILED, fmt.Sprintf(
		"a wait for an interprocess event: the work that process %d recorded it behind has failed", e.by[n%eventMarks].Load())}
}

func (e *sharedEvent) reached(n uint64) bool { return n == 0 || e.done[n%eventMarks].Load() >= n }

// orphaned reports whether the process that made a recording has ended before
// the recording was complete, and which it was.
func (e *sharedEvent) orphaned(n uint64) (pid int, gone bool) {
	pid = int(e.by[n%eventMarks].Load())
	return pid, hasEnded(pid) && !e.reached(n)
}

// hasEnded reports whether a process runs nothing any more. Its parent, which may be
// the one that waits, need not have taken notice.
func hasEnded(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // proc(5): pid (name) state ...
	at := bytes.LastIndexByte(stat, ')')
	return err == nil && at >= 0 && at+2 < len(stat) && (stat[at+2] == 'Z' || stat[at+2] == 'X')
}

// orphanLook is how many looks at a recording pass between two at its process.
const orphanLook = 64

// await returns when the recording is complete, stop is closed, or the context
// has failed.
func (e *sharedEvent) await(c *context, n uint64, stop <-chan struct{}) *failure {
	for pause, looks := soonestLook, 1; !e.reached(n) && c.result() == driver.CUDA_SUCCESS; pause, looks = min(2*pause, latestLook), looks+1 {
		select {
		case <-stop:
			return nil
		case <-time.After(pause):
		}
		if looks%orphanLook != 0 {
			continue
		}
		if pid, gone := e.orphaned(n); gone {
			return &failure{driver.CUDA_ERROR_LAUNCH_FAILED, fmt.Sprintf(
				"a wait for an interprocess event cannot end: process %d, which recorded it, has ended before its work", pid)}
		}
	}
	return e.lossOf(n)
}

// sharedWait is a stream's wait for a recording of another process.
type sharedWait struct {
	e *sharedEvent
	n uint64
}

func (w *sharedWait) run(x *execution) *failure {
	if x.sim.shuffle != nil {
		// The goroutine that waits here may be the one that would run what the
		// other process waits for.
		done := make(chan struct{})
		defer close(done)
		x.sim.workers.Add(1)
		go x.sim.shuffle.standIn(&x.sim.workers, done)
	}
	running := x.ctx.dev.cancel.enter()
	defer running.leave()
	f := w.e.await(x.ctx, w.n, running.stop)
	if f == nil && !w.e.reached(w.n) && x.ctx.result() == driver.CUDA_SUCCESS && !running.canceler.isClosed() {
		running.report(x.ctx, "canceled in a wait for an interprocess event")
	}
	return f
}

// host waits in the calling thread.
func (e *sharedEvent) host(c *context, n uint64) {
	running := c.dev.cancel.enter()
	defer running.leave()
	if f := e.await(c, n, running.stop); f != nil {
		c.fail(f)
	}
}

// waitShared makes a stream wait for the latest recording.
func (d *simulator) waitShared(s *stream, e *event) driver.CUresult {
	n := e.shared.latest.Load()
	rec := e.get()
	switch {
	case rec != nil && rec.number == n:
		s.enqueueQuick(joinWork{}, rec.point)
	case !e.shared.reached(n) || e.shared.lossOf(n) != nil:
		d.behindGraphs()
		s.awaitRoom(false)
		s.enqueue(&sharedWait{e.shared, n})
	}
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuIpcGetEventHandle(h driver.CUevent) (handle driver.CUipcEventHandle, r driver.CUresult) {
	e, r := d.event(h)
	if r != driver.CUDA_SUCCESS {
		return handle, r
	}
	if e.shared == nil || e.shared.imported {
		return handle, driver.CUDA_ERROR_INVALID_HANDLE
	}
	e.shared.known.Store(true)
	for i, w := range []uint64{eventMagic, uint64(os.Getpid()), uint64(e.shared.file.Fd()), e.shared.id, uint64(e.shared.offset)} {
		binary.LittleEndian.PutUint64(handle.Reserved[8*i:], w)
	}
	return handle, r
}

// CuIpcOpenEventHandle finds the page by the descriptor that the other process
// has of it.
func (d *simulator) CuIpcOpenEventHandle(handle driver.CUipcEventHandle) (driver.CUevent, driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	var words [5]uint64
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(handle.Reserved[8*i:])
	}
	if words[0] != eventMagic {
		return 0, driver.CUDA_ERROR_INVALID_HANDLE
	}
	f, err := memfd.Open(int(words[1]), int(words[2]))
	if errors.Is(err, fs.ErrPermission) {
		return 0, driver.CUDA_ERROR_MAP_FAILED
	}
	if err != nil {
		return 0, resultOf(err, driver.CUDA_ERROR_INVALID_HANDLE)
	}
	defer func() { _ = f.Close() }()
	offset := int64(words[4])
	if offset%eventBytes != 0 {
		return 0, driver.CUDA_ERROR_INVALID_HANDLE
	}
	shared, mem, err := d.eventFile.mapPage(f, offset)
	if err != nil {
		return 0, resultOf(err, driver.CUDA_ERROR_INVALID_HANDLE)
	}
	runtime.AddCleanup(shared, d.eventFile.unmapPage, mem)
	if shared.magic != eventMagic || shared.id != words[3] || shared.destroyed.Load() != 0 {
		return 0, driver.CUDA_ERROR_INVALID_HANDLE
	}
	shared.imported = true
	e := &event{ctx: c, flags: driver.CU_EVENT_DISABLE_TIMING, shared: shared}
	e.handle = d.events.add(e)
	return e.handle, driver.CUDA_SUCCESS
}
