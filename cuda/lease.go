// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cudago/cudago/internal/memfd"
)

// CUDA wants memory that another process has imported to be freed there first,
// and does not check it. So every pool that is exported has a file of leases,
// one word for each exported allocation, which says whether there is one. Who
// has imported it holds a lock on the word; who wants to free it must get the
// lock. A lock belongs to the file as it was opened: each side opens it for itself,
// and a forked child closes it, so that the system releases the locks of a process
// that dies. Before the words stand a mark, the pool's id and
// the kind of its memory.
const leaseBytes = 8

// leaseMagic begins each such file. Without it any file in memory with a small
// number at the right place, such as one of a driver's, would be taken for one.
const leaseMagic = 0x73657361656c6475 // "udleases"

// A PoolID is a random number, the same in all processes that share the pool.
type PoolID [16]byte

// offset is where the word of a slot is.
func offset(slot int64) int64 { return int64(len(PoolID{})) + (2+slot)*leaseBytes }

// setLock is fcntl's command for locks that belong to an open file and not to a
// process, from linux/fcntl.h.
const setLock = 37 // F_OFD_SETLK

func lockWord(f *os.File, kind int16, slot int64) error {
	for {
		lock := syscall.Flock_t{Type: kind, Start: offset(slot), Len: leaseBytes}
		err := syscall.FcntlFlock(f.Fd(), setLock, &lock)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// lessor is the exporting side.
type lessor struct {
	file *os.File
	id   PoolID

	exported atomic.Bool // the driver has made a descriptor of the pool: see ExportPointer

	mu    sync.Mutex
	slots map[uint64]int64 // guarded by mu; of the exported allocations, by address
	next  int64            // guarded by mu; no slot is used twice
}

func newLessor(kind MemoryKind) (*lessor, error) {
	f, err := memfd.Create("cudago leases")
	if err != nil {
		return nil, err
	}
	l := &lessor{file: f, slots: map[uint64]int64{}}
	_, _ = rand.Read(l.id[:]) // never fails
	head := append(binary.LittleEndian.AppendUint64(nil, leaseMagic), l.id[:]...)
	if _, err := f.WriteAt(binary.LittleEndian.AppendUint64(head, uint64(kind)), 0); err != nil {
		_ = f.Close()
		return nil, err
	}
	tellDescriptor(f, true)
	return l, nil
}

func (l *lessor) close() {
	tellDescriptor(l.file, false)
	_ = l.file.Close()
}

// export opens the file once more, for others. With a duplicate they would hold the
// exporter's locks.
func (l *lessor) export() (fd int, err error) {
	f, err := memfd.Open(os.Getpid(), int(l.file.Fd()))
	if err != nil {
		return -1, err
	}
	defer func() { _ = f.Close() }()
	return memfd.Duplicate(f)
}

// slot returns the slot of an allocation, the same each time.
func (l *lessor) slot(base uint64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.slots[base]; ok {
		return at, nil
	}
	at := l.next
	if err := l.write(at, 1); err != nil {
		return 0, err
	}
	l.next++
	l.slots[base] = at
	return at, nil
}

func (l *lessor) write(slot int64, word uint64) error {
	_, err := l.file.WriteAt(binary.LittleEndian.AppendUint64(nil, word), offset(slot))
	return err
}

// end reports whether the allocation can be freed: nobody has imported it, and
// from now on nobody can.
func (l *lessor) end(base uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.slots[base]
	if !ok {
		return true
	}
	if lockWord(l.file, syscall.F_WRLCK, at) != nil {
		return false
	}
	// A write that fails leaves a word that says too much: as without leases.
	_ = l.write(at, 0)
	_ = lockWord(l.file, syscall.F_UNLCK, at)
	delete(l.slots, base)
	return true
}

// claim locks all exported allocations, so that nobody imports one until letGo. It
// returns how many others have imported; unless that is 0, it locks none.
func (l *lessor) claim() (imported int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.slots {
		if lockWord(l.file, syscall.F_WRLCK, at) != nil {
			imported++
		}
	}
	if imported > 0 {
		l.unlock()
	}
	return imported
}

// unlock undoes what claim has locked.
//
// Preconditions: mu is held.
func (l *lessor) unlock() {
	for _, at := range l.slots {
		_ = lockWord(l.file, syscall.F_UNLCK, at)
	}
}

// letGo undoes claim. Allocations that are gone are nobody's to import any more.
func (l *lessor) letGo(gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.slots {
		if gone {
			_ = l.write(at, 0) // as in end
		}
	}
	l.unlock()
	if gone {
		clear(l.slots)
	}
}

// lessors are the exporting sides of a context's pools.
type lessors struct {
	mu  sync.Mutex
	all map[*lessor]struct{} // guarded by mu
}

func (s *lessors) add(l *lessor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*lessor]struct{}{}
	}
	s.all[l] = struct{}{}
}

func (s *lessors) remove(l *lessor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, l)
}

// claim is [lessor.claim] of all, for a reset, which frees what processes share
// without asking. letGo is nil if others have imported something.
func (s *lessors) claim() (letGo func(gone bool), imported int) {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.all))
	s.mu.Unlock()
	var claimed []*lessor
	for _, l := range all {
		if n := l.claim(); n > 0 {
			imported += n
		} else {
			claimed = append(claimed, l)
		}
	}
	letGo = func(gone bool) {
		for _, l := range claimed {
			l.letGo(gone)
		}
	}
	if imported > 0 {
		letGo(false)
		return nil, imported
	}
	return letGo, 0
}

// lessee is the importing side.
type lessee struct {
	file *os.File
	id   PoolID
	kind MemoryKind

	mu    sync.Mutex
	count map[int64]int // guarded by mu; the lock belongs to the file, which has it once
}

// newLessee opens the file behind a descriptor. A duplicate would share its locks
// with the exporter.
func newLessee(fd int) (*lessee, error) {
	f, err := memfd.Open(os.Getpid(), fd)
	if errors.Is(err, memfd.ErrNotSealed) || errors.Is(err, fs.ErrNotExist) {
		return nil, errNoLeases
	}
	if err != nil {
		return nil, err
	}
	l := &lessee{file: f, count: map[int64]int{}}
	if err := l.read(); err != nil {
		_ = f.Close()
		return nil, err
	}
	tellDescriptor(f, true)
	return l, nil
}

// errNoLeases is of a descriptor that is of something else.
var errNoLeases = errors.New("the second descriptor is not that of a pool's leases")

func (l *lessee) read() error {
	var head struct {
		Magic uint64
		ID    PoolID
		Kind  uint64
	}
	if binary.Read(io.NewSectionReader(l.file, 0, offset(0)), binary.LittleEndian, &head) != nil || head.Magic != leaseMagic {
		return errNoLeases
	}
	l.id, l.kind = head.ID, MemoryKind(head.Kind)
	if head.Kind != uint64(DeviceMemory) && head.Kind != uint64(PinnedMemory) {
		return errNoLeases
	}
	return nil
}

func (l *lessee) close() {
	tellDescriptor(l.file, false)
	_ = l.file.Close()
}

// mostSlots is more than a pool can have given: its file would have 8 TiB. Words
// at far greater offsets do not exist for fcntl.
const mostSlots = 1 << 40

// errNoSlot is returned by take for a number that is no slot of the pool.
var errNoSlot = errors.New("the pool has given no such slot")

// errBusy is returned by take while the other process tries to free the allocation,
// or waits for its device before a reset.
var errBusy = errors.New("the process that shared the memory is about to free it")

// errFreed is returned by take for an allocation that is gone.
var errFreed = errors.New("the process that shared the memory has freed it")

func (l *lessee) take(slot int64) error {
	if slot < 0 || slot >= mostSlots {
		return errNoSlot
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count[slot] == 0 {
		err := lockWord(l.file, syscall.F_RDLCK, slot)
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
			return errBusy
		}
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		word := make([]byte, leaseBytes)
		_, err = l.file.ReadAt(word, offset(slot))
		switch {
		case err != nil:
			err = errNoSlot
		case binary.LittleEndian.Uint64(word) != 1:
			err = errFreed
		}
		if err != nil {
			_ = lockWord(l.file, syscall.F_UNLCK, slot)
			return err
		}
	}
	l.count[slot]++
	return nil
}

func (l *lessee) giveBack(slot int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count[slot]--; l.count[slot] == 0 {
		delete(l.count, slot)
		_ = lockWord(l.file, syscall.F_UNLCK, slot)
	}
}
