// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/cudago/cudago/internal/ptxvm/check"
)

// theHost is what findings call the program outside its device work.
const theHost = "the host"

// HostAccess is documented at driver.Checker.
func (d *simulator) HostAccess(p uintptr, size uint64) {
	a := d.space.find(uint64(p))
	if a == nil {
		return
	}
	// Later accesses of the host to the memory are not seen.
	a.ctx.dev.memory.Define(uint64(p), size)
	on := d.check.flags()
	if on&checkHost == 0 || on&checkRaces == 0 {
		return
	}
	w := &check.Watch{Checks: check.Races, Name: theHost}
	if at := d.check.site(""); at != "" {
		w.Name += " at " + at
	}
	t := &task{watch: w}
	w.Unordered = func(earlier uint32) *check.Watch { return d.check.order.unordered(t, earlier) }
	w.Report = func(f *check.Finding) { d.complete(f); a.ctx.found(f.Error(), on) }
	w.Task = d.check.order.visit(t)
	w.Touch(a.ctx.dev.memory, uint64(p), size, false)
	w.Flush()
}
