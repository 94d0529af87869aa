// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// memoryKind says which call made an allocation.
type memoryKind uint8

const (
	memDevice     memoryKind = iota // cuMemAlloc
	memPool                         // cuMemAllocAsync
	memGraph                        // an allocation node
	memPinned                       // cuMemHostAlloc
	memManaged                      // cuMemAllocManaged
	memRegistered                   // cuMemHostRegister: the caller's own memory
)

var bufferCount atomic.Uint64

// allocation is a range that a call of this driver made. Immutable but for the
// fields named.
type allocation struct {
	base, size uint64
	kind       memoryKind
	id         uint64 // CU_POINTER_ATTRIBUTE_BUFFER_ID
	ctx        *context
	readOnly   bool               // registered: kernels must not write it
	place      *place             // memPool or memPinned, of a pool that processes share
	pool       *pool              // memPool; memPinned and memManaged, if it is from one
	returned   bool               // guarded by pool.mu; the pool no longer counts it as used
	seenBy     []*device          // of a pool: whose kernels can access host memory
	graph      *graphAlloc        // memGraph
	access     *memory.Permission // memGraph
	mapping    []byte             // memPinned, memManaged
	advised    *advised           // memManaged
	external   *fileUse           // memDevice, of another API
	offset     uint64             // in the file of external

	// freed says that the owner freed it, though work that uses it may still be
	// queued; gone says that the memory no longer exists.
	freed, gone atomic.Bool

	maker   string                 // the call that makes it, if not that of its kind
	site    string                 // the call that made it, and from where
	freedBy atomic.Pointer[string] // the same of the call that gave it back
}

// allocators are the calls that make each kind, for messages.
var allocators = [...]string{"cuMemAlloc", "cuMemAllocAsync", "an allocation node", "cuMemHostAlloc", "cuMemAllocManaged", "cuMemHostRegister"}

// String names the allocation in messages of the VM, by the place that made it.
func (a *allocation) String() string { return fmt.Sprintf("%s (buffer %d)", a.site, a.id) }

// give notes that the owner frees the memory by a call. It reports false if it
// was freed before.
func (d *simulator) give(a *allocation, call string) bool {
	if !a.freed.CompareAndSwap(false, true) {
		return false
	}
	by := d.check.site(call)
	a.freedBy.Store(&by)
	d.check.frees.Add(1)
	return true
}

// freer is the call that freed the memory, or call if another thread is about
// to note it.
func (a *allocation) freer(call string) string {
	if by := a.freedBy.Load(); by != nil {
		return *by
	}
	return call
}

// onDevice reports whether the memory is a device's and not the host's.
func (a *allocation) onDevice() bool { return a.kind <= memGraph }

// space finds allocations by address, those of all devices together.
type space struct {
	mu   sync.RWMutex
	list []*allocation // guarded by mu; sorted by base
}

func (s *space) add(a *allocation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.index(a.base)
	s.list = slices.Insert(s.list, i, a)
}

// addFree adds an allocation unless it overlaps an existing one, which addFree
// then returns.
func (s *space) addFree(a *allocation) (inTheWay *allocation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.index(a.base)
	if i > 0 && a.base-s.list[i-1].base < s.list[i-1].size {
		return s.list[i-1]
	}
	if i < len(s.list) && s.list[i].base-a.base < a.size {
		return s.list[i]
	}
	s.list = slices.Insert(s.list, i, a)
	return nil
}

// index is where the first allocation after base starts.
//
// Preconditions: s.mu must be locked.
func (s *space) index(base uint64) int {
	// Device addresses only grow, so a new allocation mostly goes to the end.
	if n := len(s.list); n == 0 || s.list[n-1].base <= base {
		return n
	}
	return sort.Search(len(s.list), func(i int) bool { return s.list[i].base > base })
}

func (s *space) remove(a *allocation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.index(a.base) - 1; i >= 0 && s.list[i] == a {
		s.list = slices.Delete(s.list, i, i+1)
	}
}

// find returns the allocation that contains addr, or nil.
func (s *space) find(addr uint64) *allocation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := s.index(addr) - 1
	if i < 0 || addr-s.list[i].base >= s.list[i].size {
		return nil
	}
	return s.list[i]
}

// start returns the allocation that starts at addr and was not freed.
func (s *space) start(addr driver.CUdeviceptr) *allocation {
	a := s.find(uint64(addr))
	if a == nil || a.base != uint64(addr) || a.freed.Load() {
		return nil
	}
	return a
}

// imported returns another process's memory at a place, if it is imported into a
// context and was not freed.
func (s *space) imported(c *context, at *place) *allocation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, a := range s.list {
		if a.ctx == c && a.isTheirs() && a.place.is(at) && !a.freed.Load() {
			return a
		}
	}
	return nil
}

// lends reports whether memory of an imported pool is imported and was not freed.
func (s *space) lends(p *sharedPool) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.ContainsFunc(s.list, func(a *allocation) bool { return a.isTheirs() && a.place.pool.id == p.id && !a.freed.Load() })
}

func (s *space) ofContext(c *context) []*allocation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []*allocation
	for _, a := range s.list {
		if a.ctx == c {
			list = append(list, a)
		}
	}
	return list
}

// close unmaps the host memory that was not freed, and lets go of files.
func (s *space) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.list {
		if a.mapping != nil {
			unmap(a.mapping)
		}
		a.closeFile()
	}
	s.list = nil
}

// isSimulated reports whether addr can only be a device address: bit 55 is
// never set in the address of a process's memory.
func isSimulated(addr uint64) bool { return addr&(1<<55) != 0 }

// memoryOf returns the device memory that addr lies in, or nil.
func (d *simulator) memoryOf(addr uint64) *memory.Memory {
	for _, dev := range d.devices {
		if _, _, _, ok := dev.memory.Range(addr); ok {
			return dev.memory
		}
	}
	return nil
}
