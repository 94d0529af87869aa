// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"math/bits"
	"runtime"

	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// A cta is a worker's state: one block, its warps and its memories. It is
// bound to a launch and runs one block after the other. One goroutine uses it
// at a time.
type cta struct {
	lane.CTA
	kernel *Kernel
	run    *execution
	warps  []warp
	epoch  uint64 // of the memory, when sites were found

	live     uint32 // threads that have not exited
	barriers [lane.Barriers]barrier
	watch    *check.Block // used if run.watch is set
}

// runTurn runs the warps until all have exited, or those that have not have each had
// a turn. It reports whether the block is finished.
func (c *cta) runTurn() (finished bool) {
	for {
		progress, yielded := false, false
		for i := range c.warps {
			w := &c.warps[i]
			if len(w.ready) == 0 {
				continue
			}
			progress = true
			yielded = w.run() || yielded
		}
		if c.live == 0 {
			return true
		}
		if !progress {
			c.deadlock()
		}
		if yielded {
			return false
		}
	}
}

// quantumEnded is called when a warp has used up its quantum. It ends the block if the
// launch was canceled or has failed elsewhere, and lets other goroutines run.
func (c *cta) quantumEnded(w *warp) {
	c.run.check(w)
	runtime.Gosched()
}

// exited is called when lanes of w have ended: they may have been the last that
// a barrier or a collective was waiting for.
func (c *cta) exited(w *warp, n int) {
	c.live -= uint32(n)
	if len(w.parked) > 0 && w.live != 0 {
		w.retryCollectives()
	}
	for id := range c.barriers {
		b := &c.barriers[id]
		if !b.used {
			continue
		}
		target := c.live
		if b.expected != 0 {
			b.arrived += w.absent(id, 0)
			target = b.expected
		}
		if b.arrived >= target {
			c.releaseBarrier(id)
		}
	}
}

// deadlock reports that every remaining thread waits.
func (c *cta) deadlock() {
	for i := range c.warps {
		w := &c.warps[i]
		if len(w.parked) == 0 {
			continue
		}
		p := &w.parked[0]
		w.at = p.at
		w.setRunning(&p.group)
		w.Fault(&lane.Stop{Kind: fault.Deadlock, Lane: bits.TrailingZeros32(p.mask), Detail: c.waiting()})
	}
	panic("BUG: live threads, none ready, none parked")
}

// idleCTAs is how many CTAs a device keeps for the next launch.
const idleCTAs = 16

// takeCTA returns an idle CTA, if possible one that ran the kernel
// before and still holds its constants.
func (d *Device) takeCTA(k *Kernel) *cta {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.idle)
	if n == 0 {
		return &cta{}
	}
	pick := n - 1
	for i, c := range d.idle {
		if c.kernel == k {
			pick = i
			break
		}
	}
	c := d.idle[pick]
	d.idle[pick] = d.idle[n-1]
	d.idle = d.idle[:n-1]
	return c
}

func (d *Device) putCTA(c *cta) {
	c.run, c.Launch, c.Params, c.Consts, c.Checks = nil, nil, nil, nil, nil
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed && len(d.idle) < idleCTAs {
		d.idle = append(d.idle, c)
	}
}

// bind prepares the CTA for a launch: memories of the right size, and
// registers that hold the kernel's constants and the launch's specials.
func (c *cta) bind(r *execution) {
	k := r.kernel
	n := int(r.threads+register.Lanes-1) / register.Lanes
	c.run, c.Launch, c.Params, c.ArgBytes = r, &r.Launch, r.params, uint64(k.ir.ArgBytes)
	c.Memory, c.Consts = k.module.device.memory, k.module.consts
	c.SetShared(uint64(k.dynamicOffset)+uint64(r.DynamicShared), k.module.device.config.reservedShared(), k.usesReserved)
	c.LocalStride = (k.localBytes + 15) &^ 15
	if need := c.LocalStride * uint64(n) * register.Lanes; uint64(len(c.Local)) < need {
		c.Local = make([]byte, need)
	}
	c.epoch = k.module.device.memory.Epoch()
	if c.kernel == k && len(c.warps) == n {
		clear(c.Sites)
	} else {
		c.kernel = k
		c.Sites = make([]lane.Site, k.sites)
		c.makeWarps(n)
	}
	if r.watch != nil {
		c.watch = c.watch.Bind(&c.CTA, r.watch, k.entry.checked, n)
	}
	for i := range c.warps {
		w := &c.warps[i]
		w.File = w.frameAt(0)
		k.entry.fillSpecials(w, register.Full, false)
		for j := range k.entry.loads {
			w.LoadParam(&k.entry.loads[j], register.Full)
		}
	}
}

// makeWarps allocates the warps' registers and fills in the constants.
func (c *cta) makeWarps(n int) {
	fn := c.kernel.entry
	words := int(fn.regBytes)/8 + 8 // the gap keeps warps off each other's cache sets
	all := make([]uint64, words*n)
	c.warps = make([]warp, n)
	for i := range c.warps {
		w := &c.warps[i]
		w.cta, w.CTA, w.Index = c, &c.CTA, i
		w.stack = all[i*words : (i+1)*words : (i+1)*words]
		w.frames = []frame{{fn: fn, parent: -1, room: fn.regBytes}}
		w.File = w.frameAt(0)
		for j := range fn.consts {
			k := &fn.consts[j]
			w.Fill(k.reg, k.class, k.bits, register.Full)
		}
	}
}

// start sets the CTA to the beginning of a block.
func (c *cta) start(i uint64) {
	r := c.run
	r.check(nil)
	c.Linear = i
	g := r.Grid
	c.Block = [3]uint32{uint32(i % uint64(g[0])), uint32(i / uint64(g[0]) % uint64(g[1])), uint32(i / uint64(g[0]) / uint64(g[1]))}
	if e := c.kernel.module.device.memory.Epoch(); e != c.epoch {
		c.epoch = e
		clear(c.Sites)
	}
	if r.watch != nil {
		c.watch.Start(c.epoch)
	}
	c.StartShared()
	c.live = r.threads
	c.barriers = [lane.Barriers]barrier{}
	for i := range c.warps {
		w := &c.warps[i]
		w.live = register.Full
		if left := int(r.threads) - i*register.Lanes; left < register.Lanes {
			w.live = 1<<left - 1
		}
		w.frames, w.free = w.frames[:1], 0
		w.frames[0].refs = 1
		w.parked = w.parked[:0]
		w.ready = append(w.ready[:0], group{mask: w.live})
		w.File = w.frameAt(0)
		w.spent, w.Fuel = 0, quantum
		c.kernel.entry.fillSpecials(w, register.Full, true)
	}
}
