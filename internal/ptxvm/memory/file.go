// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"

	"github.com/cudago/cudago/internal/memfd"
)

// A File is where memory lies that other processes may map too: see [memfd.Map].
type File struct {
	FD     uintptr
	Offset int64 // of a page
	// Theirs says that another process allocated the memory, so that it does not
	// count as used here.
	Theirs bool
}

// AllocFile is AllocShared of memory in a file. Free unmaps it; the file remains.
func (m *Memory) AllocFile(f File, size uint64, site any, access *Permission) (uint64, error) {
	if size == 0 {
		return 0, fmt.Errorf("ptxvm: allocation of 0 bytes")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.room(size, f.Theirs); err != nil {
		return 0, err
	}
	block, err := m.store.file(f.FD, f.Offset, size)
	if err != nil {
		return 0, notMapped(size, err)
	}
	base := reserveAddress(size, AllocAlign)
	if !f.Theirs {
		m.used += size
	}
	m.allocs = append(m.allocs, &allocation{
		base: base, size: size, block: block, kind: DeviceMemory, site: site, access: access, theirs: f.Theirs,
	})
	return base, nil
}

// ErrTooLarge is of memory that another process says to have, and no process can
// have on this device. A file in memory has any size that somebody gave it.
var ErrTooLarge = errors.New("more bytes than the device has")

// room is whether there can be memory of this size.
//
// Preconditions: m.mu must be locked.
func (m *Memory) room(size uint64, theirs bool) error {
	switch {
	case theirs && size > m.capacity:
		return fmt.Errorf("ptxvm: %w: %d bytes of %d", ErrTooLarge, size, m.capacity)
	case !theirs && (size > m.capacity || m.used > m.capacity-size):
		return fmt.Errorf("%w: %d bytes requested, %d of %d free", ErrOutOfMemory, size, m.capacity-m.used, m.capacity)
	}
	return nil
}

// notMapped is why memory in a file cannot be had: there is not enough, or the file
// is none of ours.
func notMapped(size uint64, err error) error {
	if errors.Is(err, memfd.ErrNotSealed) || errors.Is(err, memfd.ErrTooSmall) {
		return fmt.Errorf("ptxvm: %d bytes: %w", size, err)
	}
	return fmt.Errorf("%w: %d bytes: %w", ErrOutOfMemory, size, err)
}
