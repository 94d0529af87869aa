// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// specialFn returns a special register's value in a lane.
type specialFn func(w *warp, l int) uint64

// fillSpecial returns how to compute a special register that keeps its value
// while the block runs; nil if there is none such.
func fillSpecial(id ptxir.SpecialID) specialFn {
	axis := func(first ptxir.SpecialID) int { return int(id - first) }
	switch {
	case id >= ptxir.SpecialTidX && id <= ptxir.SpecialTidZ:
		i := axis(ptxir.SpecialTidX)
		return func(w *warp, l int) uint64 { return uint64(w.thread(l)[i]) }
	case id >= ptxir.SpecialNtidX && id <= ptxir.SpecialNtidZ:
		i := axis(ptxir.SpecialNtidX)
		return func(w *warp, _ int) uint64 { return uint64(w.cta.run.block[i]) }
	case id >= ptxir.SpecialCtaidX && id <= ptxir.SpecialCtaidZ:
		i := axis(ptxir.SpecialCtaidX)
		return func(w *warp, _ int) uint64 { return uint64(w.cta.block[i]) }
	case id >= ptxir.SpecialNctaidX && id <= ptxir.SpecialNctaidZ:
		i := axis(ptxir.SpecialNctaidX)
		return func(w *warp, _ int) uint64 { return uint64(w.cta.run.grid[i]) }
	}
	return plainSpecials[id]
}

var plainSpecials = map[ptxir.SpecialID]specialFn{
	ptxir.SpecialLaneid:     func(_ *warp, l int) uint64 { return uint64(l) },
	ptxir.SpecialWarpid:     func(w *warp, _ int) uint64 { return uint64(w.index) },
	ptxir.SpecialNwarpid:    func(*warp, int) uint64 { return maxBlockThreads / register.Lanes },
	ptxir.SpecialSmid:       func(w *warp, _ int) uint64 { return w.cta.linear % uint64(w.cta.processors()) },
	ptxir.SpecialNsmid:      func(w *warp, _ int) uint64 { return uint64(w.cta.processors()) },
	ptxir.SpecialGridid:     func(w *warp, _ int) uint64 { return w.cta.run.id },
	ptxir.SpecialLanemaskEq: func(_ *warp, l int) uint64 { return 1 << l },
	ptxir.SpecialLanemaskLt: func(_ *warp, l int) uint64 { return 1<<l - 1 },
	ptxir.SpecialLanemaskLe: func(_ *warp, l int) uint64 { return 2<<l - 1 },
	ptxir.SpecialLanemaskGt: func(_ *warp, l int) uint64 { return uint64(^uint32(2<<l - 1)) },
	ptxir.SpecialLanemaskGe: func(_ *warp, l int) uint64 { return uint64(^uint32(1<<l - 1)) },
	ptxir.SpecialWarpSize:   func(*warp, int) uint64 { return register.Lanes },
	ptxir.SpecialDynamicSmemSize: func(w *warp, _ int) uint64 {
		return uint64(w.cta.run.dynamicShared)
	},
	ptxir.SpecialTotalSmemSize:      func(w *warp, _ int) uint64 { return w.cta.sharedBytes },
	ptxir.SpecialAggrSmemSize:       func(w *warp, _ int) uint64 { return w.cta.sharedBytes },
	ptxir.SpecialEnvreg:             func(*warp, int) uint64 { return 0 },
	ptxir.SpecialEnvreg1:            func(w *warp, _ int) uint64 { return w.cta.run.workspace >> 32 },
	ptxir.SpecialEnvreg2:            func(w *warp, _ int) uint64 { return uint64(uint32(w.cta.run.workspace)) },
	ptxir.SpecialClusterOne:         func(*warp, int) uint64 { return 1 },
	ptxir.SpecialClusterZero:        func(*warp, int) uint64 { return 0 },
	ptxir.SpecialIsExplicitCluster:  func(*warp, int) uint64 { return 0 },
	ptxir.SpecialReservedSmemOffset: func(*warp, int) uint64 { return 0 },
	ptxir.SpecialGraphExec:          func(*warp, int) uint64 { return 0 },
}

func (c *context) processors() int { return c.kernel.module.device.config.Multiprocessors }

// thread returns the coordinates of a lane's thread in its block.
func (w *warp) thread(l int) [3]uint32 {
	n := w.cta.run.block
	i := uint32(w.index*register.Lanes + l)
	return [3]uint32{i % n[0], i / n[0] % n[1], i / n[0] / n[1]}
}

// readSpecial chooses the reading of a special register that changes.
func (s *selection) readSpecial() error {
	if len(s.ir.Dst) != 1 {
		return fmt.Errorf("one destination is wanted")
	}
	class := s.class(s.ir.Dst[0])
	id := ptxir.SpecialID(s.ir.Imm)
	if clocks[id] == nil && fillSpecial(id) == nil {
		return errNoExecutor
	}
	s.in.b = uint32(class)
	s.in.fn = readSpecial
	return s.take(&s.in.d, s.ir.Dst[0], class)
}

// clocks are the special registers that change. A cycle is a nanosecond of the
// host's clock.
var clocks = map[ptxir.SpecialID]func() uint64{
	ptxir.SpecialClock:         cycles,
	ptxir.SpecialClockHi:       func() uint64 { return cycles() >> 32 },
	ptxir.SpecialClock64:       cycles,
	ptxir.SpecialGlobaltimer:   func() uint64 { return uint64(time.Now().UnixNano()) },
	ptxir.SpecialGlobaltimerLo: func() uint64 { return uint64(uint32(time.Now().UnixNano())) },
	ptxir.SpecialGlobaltimerHi: func() uint64 { return uint64(time.Now().UnixNano()) >> 32 },
}

var epoch = time.Now()

func cycles() uint64 { return uint64(time.Since(epoch)) }

func readSpecial(w *warp, in *inst, m uint32) {
	id := ptxir.SpecialID(in.imm)
	var v uint64
	clock := clocks[id]
	if clock != nil {
		v = clock()
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		if clock == nil {
			v = fillSpecial(id)(w, l)
		}
		if register.Class(in.b) == register.ClassPred {
			w.SetPred(in.d, v != 0, 1<<l)
			continue
		}
		w.SetRaw(in.d, register.Class(in.b), l, v)
	}
}

// fill sets the constants and special registers of a frame for some lanes.
func (fn *function) fill(w *warp, f *frame, m uint32) {
	for i := range fn.consts {
		c := &fn.consts[i]
		v := c.bits
		if c.local {
			v += uint64(f.local)
		}
		w.Fill(c.reg, c.class, v, m)
	}
	fn.fillSpecials(w, m, false)
	fn.fillSpecials(w, m, true)
}

// perBlock reports whether a special register depends on the block.
func perBlock(id ptxir.SpecialID) bool {
	return id >= ptxir.SpecialCtaidX && id <= ptxir.SpecialCtaidZ || id == ptxir.SpecialSmid
}

// fillSpecials sets the special registers that depend on the block, or those
// that do not.
func (fn *function) fillSpecials(w *warp, m uint32, perBlock bool) {
	for _, s := range fn.specials {
		if s.perBlock != perBlock {
			continue
		}
		class := fn.ir.Regs[s.index]
		if perBlock { // the same for all lanes
			w.Fill(s.reg, class, s.fn(w, 0), m)
			continue
		}
		for n := m; n != 0; n &= n - 1 {
			l := bits.TrailingZeros32(n) & 31
			v := s.fn(w, l)
			if class == ptxir.ClassPred {
				w.SetPred(s.reg, v != 0, 1<<l)
				continue
			}
			w.SetRaw(s.reg, register.ClassOf(class), l, v)
		}
	}
}
