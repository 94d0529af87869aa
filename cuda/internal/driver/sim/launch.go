// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/fault"
)

// kernelWork launches a kernel. The parameter block was copied at the call.
type kernelWork struct {
	fn           *function
	grid, block  [3]uint32
	shared       uint32
	cooperative  bool
	programmatic bool  // may start before the kernel in front of it is done
	priority     int32 // changes nothing here, see hints
	args         []byte
	records      []launchRecord
	recycled     bool        // made for one launch, and returned to launches afterwards
	pointers     pointerList // guarded by simulator.graphMu; into args, for cuGraphKernelNodeGetParams
}

// launches pools the work of completed launches, so that a launch into a stream
// allocates nothing.
var launches = sync.Pool{New: func() any { return &kernelWork{recycled: true} }}

func (w *kernelWork) run(x *execution) *failure {
	defer w.drop()
	if w.fn.module.unloaded.Load() {
		return &failure{driver.CUDA_ERROR_LAUNCH_FAILED, fmt.Sprintf("launch of kernel %s, whose module was unloaded", w.fn.kernel.Name())}
	}
	var watch *check.Watch
	if x.mark != nil {
		watch = x.watch("kernel "+w.fn.kernel.Name(), w.pointsTo)
	}
	if watch == nil && x.ctx.dev.memory.Undefined() {
		x.ctx.dev.memory.DefineAll() // without a check, the kernel may write anything
	}
	running := w.fn.module.ctx.dev.cancel.enter()
	defer running.leave()
	x.launch = ptxvm.Launch{
		Grid: w.grid, Block: w.block, DynamicShared: w.shared, Params: w.args,
		Cooperative: w.cooperative, Resident: w.resident(), Cancel: running.stop, Printf: x.sim.printf,
		Watch: watch, Seed: x.sim.blockSeed(), Priority: x.priority, SetConditional: x.sim.setter,
	}
	err := w.fn.kernel.Launch(&x.launch)
	if x.wasCanceled(running, err) {
		return nil
	}
	f := failureOf(err)
	if f != nil {
		f.text += w.culprit(err)
	}
	return f
}

// resident is how many blocks the device holds at once, as occupancy queries say.
func (w *kernelWork) resident() uint64 {
	return multiprocessors * uint64(w.fn.activeBlocks(int32(w.block[0]*w.block[1]*w.block[2]), uint64(w.shared)))
}

// culprit says which parameter points to the memory that a fault was next to.
func (w *kernelWork) culprit(err error) string {
	var stopped *fault.Fault
	if !errors.As(err, &stopped) || !stopped.Nearest.Found {
		return ""
	}
	return w.pointsTo(stopped.Nearest)
}

func (w *kernelWork) drop() {
	if w.recycled {
		w.fn, w.records = nil, nil
		launches.Put(w)
	}
}

// check applies the limits of the device and of the kernel.
func (w *kernelWork) check() driver.CUresult {
	gridLimits := [3]uint32{maxGridX, maxGridYZ, maxGridYZ}
	blockLimits := [3]uint32{maxBlockXY, maxBlockXY, maxBlockZ}
	threads := uint64(1)
	for i := range 3 {
		if w.grid[i] == 0 || w.grid[i] > gridLimits[i] || w.block[i] == 0 || w.block[i] > blockLimits[i] {
			return driver.CUDA_ERROR_INVALID_VALUE
		}
		threads *= uint64(w.block[i])
	}
	f := w.fn
	if threads > maxBlockThreads || w.shared > f.maxDynamicShared.Load() || f.attributes.LocalBytes > ptxvm.MostLocal {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	if f.required != [3]uint32{} && w.block != [3]uint32{max(f.required[0], 1), max(f.required[1], 1), max(f.required[2], 1)} {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	if threads > uint64(f.attributes.MaxThreads) {
		return driver.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
	}
	if w.cooperative {
		blocks := uint64(w.grid[0]) * uint64(w.grid[1]) * uint64(w.grid[2])
		if blocks > w.resident() {
			return driver.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
		}
	}
	return driver.CUDA_SUCCESS
}
