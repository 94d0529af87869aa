// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"unsafe"

	"github.com/cudago/cudago/internal/ptxvm/register"
)

// frameAt returns the register memory at a byte offset of the warp's stack.
func (w *warp) frameAt(o uint32) register.File { return register.At(w.stack, o) }

// site returns the cached range of a memory instruction. Each worker has its
// own, so no lock is needed.
func (w *warp) site(i uint32) *site { return &w.cta.sites[i] }

// sharedHost is the host address of the block's shared memory.
func (c *context) sharedHost() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(c.shared)) }

// localHost is the host address of the first thread's local memory.
func (c *context) localHost() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(c.local)) }

// paramHost is the host address of the launch's parameter block.
func (c *context) paramHost() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(c.params)) }
