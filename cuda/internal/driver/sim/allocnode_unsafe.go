// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// accessOf is the access descriptors of an allocation node.
func accessOf(p *driver.CUDA_MEM_ALLOC_NODE_PARAMS) []driver.CUmemAccessDesc {
	if p.AccessDescs == nil {
		return nil
	}
	return unsafe.Slice((*driver.CUmemAccessDesc)(p.AccessDescs), p.AccessDescCount)
}

// grants reports whether an allocation node gives a device access to its memory.
func grants(p *driver.CUDA_MEM_ALLOC_NODE_PARAMS, dev *device) bool {
	return slices.ContainsFunc(accessOf(p), func(desc driver.CUmemAccessDesc) bool {
		return int(desc.Location.ID) == dev.ordinal && desc.Flags != driver.CU_MEM_ACCESS_FLAGS_PROT_NONE
	})
}
