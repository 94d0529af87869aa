// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"sync/atomic"
)

// heldFile is a file that a handle and the allocations in it need. The last of them
// closes it, at once: Go's collector closes what nobody refers to when it next runs,
// and before that a process can run out of descriptors.
type heldFile struct {
	*os.File
	holders atomic.Int64
}

// holdFile returns a file with one holder.
func holdFile(f *os.File) *heldFile {
	h := &heldFile{File: f}
	h.holders.Store(1)
	return h
}

// use adds a holder. It returns nil if the last one has let go already.
func (h *heldFile) use() *fileUse {
	for {
		n := h.holders.Load()
		if n == 0 {
			return nil
		}
		if h.holders.CompareAndSwap(n, n+1) {
			return &fileUse{file: h}
		}
	}
}

// letGo ends one holder.
func (h *heldFile) letGo() {
	if h.holders.Add(-1) == 0 {
		_ = h.Close()
	}
}

// fileUse is that an allocation holds a file.
type fileUse struct {
	file *heldFile
	over atomic.Bool
}

// end lets go of the file, the first time.
func (u *fileUse) end() {
	if !u.over.Swap(true) {
		u.file.letGo()
	}
}
