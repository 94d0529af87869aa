// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/internal/memfault"
	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// MostLocal is the local memory that one thread can have. CUDA Programming Guide,
// "Technical Specifications per Compute Capability": 512 KB; an H200 (driver 580)
// keeps 1 KB of it. It loads code that wants more, and does not launch it.
const MostLocal = 511 << 10

// execution is one running launch.
type execution struct {
	lane.Launch
	kernel   *Kernel
	params   []byte
	cancel   <-chan struct{}
	priority int32
	watch    *check.Watch // nil without checks
	total    uint64       // blocks
	threads  uint32       // of a block

	setConditional func(handle uint64, value uint32) bool // may be nil

	printMu sync.Mutex
	printf  io.Writer // guarded by printMu

	next     atomic.Uint64 // block to hand out next; or window, of shuffled ones
	window   uint64        // blocks that are handed out together
	resident int64         // blocks that the device holds at once
	running  atomic.Int64  // blocks that have begun and not ended, or are about to begin
	full     atomic.Bool   // blocks wait, and none could begin
	stop     atomic.Bool   // set by the first fault
	executed atomic.Uint64
	failed   atomic.Pointer[fault.Fault]
	section  memfault.Section // of the whole launch
}

// launch checks the limits, runs the blocks and waits for them.
func (k *Kernel) launch(l *Launch) error {
	r, err := k.prepare(l)
	if err != nil {
		return err
	}
	d := k.module.device
	defer d.memory.ReleaseAll(d.memory.HoldAll())
	r.section = memfault.Begin()
	defer r.section.End()
	switch {
	case l.Cooperative:
		if err := r.runResident(d); err != nil {
			return err
		}
	case l.Seed != 0:
		r.runShuffled(d, l.Seed)
	default:
		defer d.priorities.enter(r)()
		r.runAll(d)
	}
	if l.Instructions != nil {
		*l.Instructions = r.executed.Load()
	}
	if f := r.failed.Load(); f != nil {
		return f
	}
	return nil
}

// prepare checks a launch against the kernel's and the device's limits.
func (k *Kernel) prepare(l *Launch) (*execution, error) {
	refuse := func(format string, args ...any) (*execution, error) {
		return nil, &LaunchError{Kernel: k.ir.Name, Reason: fmt.Sprintf(format, args...)}
	}
	d := k.module.device
	r := &execution{
		Launch: lane.Launch{Grid: l.Grid, Block: l.Block, DynamicShared: l.DynamicShared, Processors: d.config.Multiprocessors},
		kernel: k, cancel: l.Cancel, printf: l.Printf, watch: l.Watch,
		priority: l.Priority, setConditional: l.SetConditional,
	}
	threads := uint64(l.Block[0]) * uint64(l.Block[1]) * uint64(l.Block[2])
	r.total = uint64(l.Grid[0]) * uint64(l.Grid[1]) * uint64(l.Grid[2])
	switch {
	case threads == 0 || r.total == 0:
		return refuse("grid %v and block %v must not be empty", l.Grid, l.Block)
	case threads > uint64(k.maxThreads()):
		return refuse("block of %d threads, at most %d", threads, k.maxThreads())
	case l.Block[2] > 64:
		return refuse("block %v: z is at most 64", l.Block)
	case l.Grid[0] > 1<<31-1 || l.Grid[1] > 65535 || l.Grid[2] > 65535:
		return refuse("grid %v: at most 2147483647, 65535, 65535", l.Grid)
	}
	if need := k.ir.ReqThreads; need != [3]uint32{} && need != l.Block {
		return refuse("block %v, but the kernel requires %v (.reqntid)", l.Block, need)
	}
	if shared := uint64(k.dynamicOffset) + uint64(l.DynamicShared); shared > uint64(d.config.SharedBytes) {
		return refuse("%d bytes of shared memory (%d static, %d dynamic), at most %d", shared, k.staticShared, l.DynamicShared, d.config.SharedBytes)
	}
	if k.localBytes > MostLocal {
		return refuse("%d bytes of local memory for each thread, at most %d", k.localBytes, uint64(MostLocal))
	}
	if most := d.residentBlocks(uint32(threads)); l.Cooperative && r.total > most {
		return refuse("cooperative grid of %d blocks, at most %d can be resident", r.total, most)
	}
	if len(l.Params) < k.leastParams() {
		return refuse("%d bytes of parameters, the kernel has %d", len(l.Params), k.leastParams())
	}
	// Reads at the end of the block may be wider than what the caller packed.
	r.params = make([]byte, int(k.ir.ArgBytes)+16)
	copy(r.params[:k.ir.ArgBytes], l.Params)
	r.threads, r.window, r.resident = uint32(threads), 1, int64(l.Resident)
	if r.resident == 0 {
		r.resident = int64(d.config.Multiprocessors * k.ResidentBlocks(r.threads, l.DynamicShared))
	}
	r.ID = d.nextGrid()
	return r, nil
}

// leastParams is the end of the last parameter.
func (k *Kernel) leastParams() int {
	if n := len(k.ir.Args); n > 0 {
		return int(k.ir.Args[n-1].Offset + k.ir.Args[n-1].Size)
	}
	return 0
}

func (d *Device) nextGrid() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gridID++
	return d.gridID
}

// residentBlocks is how many blocks of a cooperative grid the device holds at
// once: 1024 threads and 16 blocks a multiprocessor (compute capability 7.5).
func (d *Device) residentBlocks(threads uint32) uint64 {
	warps := (threads + register.Lanes - 1) / register.Lanes
	return uint64(d.config.Multiprocessors) * uint64(min(16, lane.MaxThreads/register.Lanes/warps))
}

// ResidentBlocks returns how many blocks of the kernel fit the device at once
// with a block of that many threads and that much dynamic shared memory, for
// occupancy queries and cooperative launches.
func (k *Kernel) ResidentBlocks(threads, dynamicShared uint32) int {
	d := k.module.device
	n := d.residentBlocks(max(threads, 1)) / uint64(d.config.Multiprocessors)
	reserved := d.config.reservedShared()
	if shared := uint64(k.dynamicOffset) + uint64(dynamicShared) + reserved; shared > 0 {
		n = min(n, (uint64(d.config.SharedBytes)+reserved)/shared)
	}
	return int(n)
}

// runAll runs the blocks on this goroutine and on free workers.
func (r *execution) runAll(d *Device) {
	var helpers sync.WaitGroup
	for n := uint64(1); n < r.total; n++ {
		select {
		case d.helpers <- struct{}{}:
		default:
			n = r.total // no free worker
			continue
		}
		helpers.Go(func() {
			defer func() { <-d.helpers }()
			r.work(d)
		})
	}
	r.work(d)
	helpers.Wait()
}

// work runs blocks in ascending order until none is left, one after the other unless
// one waits for those behind it.
func (r *execution) work(d *Device) {
	if r.next.Load() >= r.total {
		return
	}
	c := d.takeCTA(r.kernel)
	defer d.putCTA(c)
	r.running.Add(1)
	defer r.running.Add(-1)
	r.protect(c, func() {
		c.bind(r)
		for !r.stop.Load() {
			d.priorities.giveWay(r)
			i := r.next.Add(1) - 1
			if i >= r.total {
				return
			}
			c.start(i)
			if !c.runTurn() {
				r.waitFor(d, c)
			}
		}
	})
	r.collect(c)
}

// collect adds up a CTA's instruction counts.
func (r *execution) collect(c *cta) {
	var n uint64
	for i := range c.warps {
		n += c.warps[i].executed
		c.warps[i].executed = 0
	}
	r.executed.Add(n)
}

// runResident runs a cooperative grid: every block has a CTA of its own,
// and each worker runs its share of them in turns.
//
// The grid has eight bytes of zeros of its own, as CUDA's driver gives it, whose
// address the registers %envreg1 and %envreg2 hold: cooperative_groups' grid.sync
// counts there (details/driver_abi.h, CUDA 13.2), and ends the kernel without them.
func (r *execution) runResident(d *Device) error {
	workspace, err := d.memory.AllocVariable(8, "cooperative grid", "launch of "+r.kernel.ir.Name)
	if err != nil {
		return err
	}
	defer func() { _ = d.memory.Free(workspace, "end of "+r.kernel.ir.Name) }() // it is still there
	if err := d.memory.Write(workspace, make([]byte, 8)); err != nil {
		return err
	}
	r.Workspace = workspace
	workers := min(uint64(d.config.Workers), r.total)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() { r.workResident(d, w, workers) })
	}
	group.Wait()
	return nil
}

func (r *execution) workResident(d *Device, first, step uint64) {
	var share []uint64
	for i := first; i < r.total; i += step {
		share = append(share, i)
	}
	t := turns{run: r, device: d}
	t.begin(share)
	t.take(nil)
}
