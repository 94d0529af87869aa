// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"sync/atomic"

	"github.com/cudago/cudago/internal/ptxvm/matrix"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// Warp is what instructions see of a warp.
type Warp struct {
	register.File // the running frame's registers
	CTA           *CTA
	Index         int           // within the block
	Fuel          int           // until the warp gives way
	Frame         int32         // number of the running frame
	redone        int           // lanes that the last fma did again
	fences        atomic.Uint32 // see fence
}

// CTA is what the warps of a block share with nobody else.
type CTA struct {
	Launch *Launch
	Block  [3]uint32
	Linear uint64 // number of the block in its grid

	Shared      []byte // the block's own
	SharedBytes uint64 // of Shared
	SharedStart uint64 // where it begins in the window, behind what is reserved
	reserved    []byte // what the kernel may use of that
	Local       []byte
	LocalStride uint64 // bytes of local memory a thread
	Params      []byte
	ArgBytes    uint64 // of params
	Sites       []Site
	Memory      *memory.Memory
	Consts      []Extent // the module's .const variables
	operands    *matrix.Operands
	Checks      any // of package check; nil without
}

// Launch is what special registers say about a launch.
type Launch struct {
	Grid, Block   [3]uint32
	DynamicShared uint32
	ID            uint64
	Workspace     uint64 // address; of cooperative grids only
	Processors    int
}

// Extent is a range of addresses.
type Extent struct{ Base, Size uint64 }

// Thread returns the coordinates of a lane's thread in its block.
func (w *Warp) Thread(l int) [3]uint32 {
	n := w.CTA.Launch.Block
	i := uint32(w.Index*register.Lanes + l)
	return [3]uint32{i % n[0], i / n[0] % n[1], i / n[0] / n[1]}
}

// Barriers is how many barriers a block has. PTX ISA, "bar, barrier".
const Barriers = 16
