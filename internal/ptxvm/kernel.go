// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"io"
	"strings"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/check"
)

// A Kernel is a decoded kernel. It is immutable and safe for concurrent use.
type Kernel struct {
	module *Module
	ir     *ptxir.Kernel
	entry  *function

	staticShared  uint32
	dynamicOffset uint32 // where dynamic shared memory starts
	usesReserved  bool   // it asks where the reserved shared memory is
	localBytes    uint64 // of one thread
	sites         uint32 // memory instructions

	checked *check.Code // of the watched form only
}

// KernelAttributes are what cuFuncGetAttribute reports.
type KernelAttributes struct {
	StaticSharedBytes uint32
	ConstBytes        uint32
	LocalBytes        uint32
	Registers         uint32 // 32-bit registers a thread, estimated from the PTX
	MaxThreads        uint32 // of a block
	PTXVersion        int    // 10 * major + minor
}

// Params returns the layout of the parameter block.
func (k *Kernel) Params() []ptxir.Param { return k.ir.Args }

// WaitsForGrids reports whether the kernel, or a function that it may call, has a
// griddepcontrol.wait. See PTX ISA, "griddepcontrol".
func (k *Kernel) WaitsForGrids() bool {
	waits, calls := waitsForGrids(&k.ir.Func)
	if calls {
		for _, f := range k.module.ir.Funcs {
			w, _ := waitsForGrids(f)
			waits = waits || w
		}
	}
	return waits
}

func waitsForGrids(f *ptxir.Func) (waits, calls bool) {
	for i := range f.Blocks {
		b := &f.Blocks[i]
		calls = calls || b.Term.Call != nil
		for j := range b.Instrs {
			in := &b.Instrs[j]
			waits = waits || in.Op == ptxir.OpGridDepControl && strings.Contains(in.Text, ".wait")
		}
	}
	return waits, calls
}

// Name returns the kernel's name in the PTX.
func (k *Kernel) Name() string { return k.ir.Name }

// Launch says how to run a kernel.
type Launch struct {
	Grid, Block   [3]uint32
	DynamicShared uint32
	Params        []byte // laid out by Params' offsets; may be shorter when trailing padding is missing
	// Cooperative keeps all blocks resident, so that they may wait for each other.
	Cooperative bool
	// Resident is how many blocks are there at once if they wait for each other; 0: as
	// many as ResidentBlocks says of each multiprocessor.
	Resident uint64
	// Cancel, when closed, stops the launch with Canceled.
	Cancel <-chan struct{}
	// Printf receives what kernels print; nil discards it.
	Printf io.Writer
	// SetConditional gives the condition of a graph a value, and reports whether
	// there is one with that handle. Nil: there is none.
	SetConditional func(handle uint64, value uint32) bool
	// Instructions, if set, receives the number of thread-level PTX
	// instructions that the launch executed.
	Instructions *uint64
	// Seed, unless 0, decides the order of the blocks, which is ascending otherwise.
	Seed uint64
	// Priority: while a launch with a higher one has blocks waiting, this launch
	// starts none.
	Priority int32
	// Watch, if set, receives what the checks find in the launch.
	Watch *check.Watch
}

// Launch runs the kernel to its end on the calling goroutine and on free
// workers of the device. Errors: a *Fault for what happened in the kernel, a
// *LaunchError for limits that the launch exceeds.
func (k *Kernel) Launch(l *Launch) error {
	if l.Watch != nil {
		return k.launchWatched(l)
	}
	return k.launch(l)
}

// A LaunchError is a launch that was refused before anything ran.
type LaunchError struct {
	Kernel string
	Reason string
}

// Error says which limit the launch exceeds.
func (e *LaunchError) Error() string { return "ptxvm: cannot launch " + e.Kernel + ": " + e.Reason }
