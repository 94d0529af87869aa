// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// SpecialFunc returns a special register's value in a lane.
type SpecialFunc func(w *Warp, l int) uint64

// Special returns the function of a special register that keeps its value while the
// block runs; nil if it is not one of those.
func Special(id ptxir.SpecialID) SpecialFunc {
	axis := func(first ptxir.SpecialID) int { return int(id - first) }
	switch {
	case id >= ptxir.SpecialTidX && id <= ptxir.SpecialTidZ:
		i := axis(ptxir.SpecialTidX)
		return func(w *Warp, l int) uint64 { return uint64(w.Thread(l)[i]) }
	case id >= ptxir.SpecialNtidX && id <= ptxir.SpecialNtidZ:
		i := axis(ptxir.SpecialNtidX)
		return func(w *Warp, _ int) uint64 { return uint64(w.CTA.Launch.Block[i]) }
	case id >= ptxir.SpecialCtaidX && id <= ptxir.SpecialCtaidZ:
		i := axis(ptxir.SpecialCtaidX)
		return func(w *Warp, _ int) uint64 { return uint64(w.CTA.Block[i]) }
	case id >= ptxir.SpecialNctaidX && id <= ptxir.SpecialNctaidZ:
		i := axis(ptxir.SpecialNctaidX)
		return func(w *Warp, _ int) uint64 { return uint64(w.CTA.Launch.Grid[i]) }
	}
	return plainSpecials[id]
}

var plainSpecials = map[ptxir.SpecialID]SpecialFunc{
	ptxir.SpecialLaneid:     func(_ *Warp, l int) uint64 { return uint64(l) },
	ptxir.SpecialWarpid:     func(w *Warp, _ int) uint64 { return uint64(w.Index) },
	ptxir.SpecialNwarpid:    func(*Warp, int) uint64 { return MaxThreads / register.Lanes },
	ptxir.SpecialSmid:       func(w *Warp, _ int) uint64 { return w.CTA.Linear % uint64(w.CTA.Launch.Processors) },
	ptxir.SpecialNsmid:      func(w *Warp, _ int) uint64 { return uint64(w.CTA.Launch.Processors) },
	ptxir.SpecialGridid:     func(w *Warp, _ int) uint64 { return w.CTA.Launch.ID },
	ptxir.SpecialLanemaskEq: func(_ *Warp, l int) uint64 { return 1 << l },
	ptxir.SpecialLanemaskLt: func(_ *Warp, l int) uint64 { return 1<<l - 1 },
	ptxir.SpecialLanemaskLe: func(_ *Warp, l int) uint64 { return 2<<l - 1 },
	ptxir.SpecialLanemaskGt: func(_ *Warp, l int) uint64 { return uint64(^uint32(2<<l - 1)) },
	ptxir.SpecialLanemaskGe: func(_ *Warp, l int) uint64 { return uint64(^uint32(1<<l - 1)) },
	ptxir.SpecialWarpSize:   func(*Warp, int) uint64 { return register.Lanes },
	ptxir.SpecialDynamicSmemSize: func(w *Warp, _ int) uint64 {
		return uint64(w.CTA.Launch.DynamicShared)
	},
	ptxir.SpecialTotalSmemSize:     totalShared,
	ptxir.SpecialAggrSmemSize:      aggregateShared,
	ptxir.SpecialReservedSmemBegin: reservedBegin,
	ptxir.SpecialReservedSmemEnd:   reservedEnd,
	ptxir.SpecialReservedSmemCap:   reservedCap,
	ptxir.SpecialEnvreg:            func(*Warp, int) uint64 { return 0 },
	ptxir.SpecialEnvreg1:           func(w *Warp, _ int) uint64 { return w.CTA.Launch.Workspace >> 32 },
	ptxir.SpecialEnvreg2:           func(w *Warp, _ int) uint64 { return uint64(uint32(w.CTA.Launch.Workspace)) },
	ptxir.SpecialClusterOne:        func(*Warp, int) uint64 { return 1 },
	ptxir.SpecialClusterZero:       func(*Warp, int) uint64 { return 0 },
	ptxir.SpecialIsExplicitCluster: func(*Warp, int) uint64 { return 0 },
	ptxir.SpecialGraphExec:         func(*Warp, int) uint64 { return 0 },
}

// readSpecial chooses the reading of a special register that changes.
func (s *selection) readSpecial() error {
	if len(s.ir.Dst) != 1 {
		return fmt.Errorf("one destination is needed")
	}
	class := s.class(s.ir.Dst[0])
	id := ptxir.SpecialID(s.ir.Imm)
	if clocks[id] == nil && Special(id) == nil {
		return errNoExecutor
	}
	s.in.B = uint32(class)
	s.in.Fn = readSpecial
	return s.take(&s.in.D, s.ir.Dst[0], class)
}

// clocks are the special registers that change. One cycle is one nanosecond of the
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

func readSpecial(w *Warp, in *Inst, m uint32) {
	id := ptxir.SpecialID(in.Imm)
	var v uint64
	clock := clocks[id]
	if clock != nil {
		v = clock()
	}
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		if clock == nil {
			v = Special(id)(w, l)
		}
		if register.Class(in.B) == register.ClassPred {
			w.SetPred(in.D, v != 0, 1<<l)
			continue
		}
		w.SetRaw(in.D, register.Class(in.B), l, v)
	}
}

// PerBlock reports whether a special register depends on the block.
func PerBlock(id ptxir.SpecialID) bool {
	return id >= ptxir.SpecialCtaidX && id <= ptxir.SpecialCtaidZ || id == ptxir.SpecialSmid
}

// MaxThreads is the limit of every compute capability so far.
const MaxThreads = 1024
