// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"unsafe"
)

// site returns the cached range of a memory instruction. Each worker has its
// own, so no lock is needed.
func (w *Warp) site(i uint32) *Site { return &w.CTA.Sites[i] }

// sharedHost is the host address of the block's shared memory.
func (c *CTA) sharedHost() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(c.Shared)) }

// localHost is the host address of the first thread's local memory.
func (c *CTA) localHost() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(c.Local)) }

// paramHost is the host address of the launch's parameter block.
func (c *CTA) paramHost() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(c.Params)) }
