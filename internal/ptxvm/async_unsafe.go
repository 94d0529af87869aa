// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// Asynchronous copies happen at once: PTX lets them happen at any time up to
// the wait. So there is nothing to commit and nothing to wait for. PTX ISA,
// "Data Movement and Conversion Instructions: Asynchronous copy".

// cpAsync: a is the shared address, b the global one, c the source size or the
// predicate to ignore the source, imm the size.
func (s *selection) cpAsync() error {
	ir, in := s.ir, s.in
	if len(ir.Src) < 2 || len(ir.Src) > 3 {
		return fmt.Errorf("%d operands, want 2 or 3", len(ir.Src))
	}
	in.mode = ptxir.Mode(s.class(ir.Src[0]))
	if err := s.take(&in.a, ir.Src[0], register.Class(in.mode)); err != nil {
		return err
	}
	if err := s.take(&in.b, ir.Src[1], register.Class64); err != nil {
		return err
	}
	if len(ir.Src) == 3 {
		class := register.Class32
		if ir.Mod&ptxir.ModIgnoreSrc != 0 {
			class = register.ClassPred
		}
		if err := s.take(&in.c, ir.Src[2], class); err != nil {
			return err
		}
	}
	in.site = s.d.newSite()
	s.d.newSite() // the second, for the shared side
	in.fn = cpAsync
	return nil
}

//go:norace
func cpAsync(w *warp, in *inst, m uint32) {
	size := in.imm
	from, to := w.site(in.site), w.site(in.site+1)
	global := w.U64(in.b)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		n := size
		if in.c != register.None {
			if in.ir.Mod&ptxir.ModIgnoreSrc == 0 {
				n = min(size, uint64(w.U32(in.c)[l]))
			} else if *w.Pred(in.c)>>l&1 != 0 {
				n = 0
			}
		}
		dst := unsafe.Slice((*byte)(w.sharedPointer(in, to, w.address(in, l), l, size)), size)
		if n > 0 {
			w.align(in, global[l], l, size)
			if global[l]-from.base >= from.span {
				w.miss(in, from, global[l], l, 1)
			}
			if last := global[l] + n - 1; last-from.base >= from.span {
				w.miss(in, from, last, l, 1)
			}
			copy(dst, unsafe.Slice((*byte)(unsafe.Add(from.host, global[l]-from.base)), n))
		}
		clear(dst[n:])
	}
}

// address is a lane's address of an instruction whose mode is the class of its
// first operand.
func (w *warp) address(in *inst, l int) uint64 {
	if register.Class(in.mode) == register.Class64 {
		return w.U64(in.a)[l]
	}
	return uint64(w.U32(in.a)[l])
}

func (w *warp) align(in *inst, addr uint64, l int, size uint64) {
	if addr&(size-1) != 0 {
		w.fault(&laneFault{kind: FaultMisaligned, in: in, lane: l, addr: addr, size: size})
	}
}

// sharedPointer resolves an address that must be in shared memory, as an offset
// or generic.
func (w *warp) sharedPointer(in *inst, s *site, addr uint64, l int, size uint64) unsafe.Pointer {
	if addr>>memory.WindowShift == memory.SharedWindow {
		addr -= memory.SharedBase
	}
	w.align(in, addr, l, size)
	if *s == (site{}) {
		*s = w.sharedSite(0)
	}
	if addr >= s.span || size > s.span-addr {
		w.fault(&laneFault{
			kind: FaultIllegalAddress, in: in, lane: l, addr: addr, size: size, space: ptxir.SpaceShared, limit: s.span,
		})
	}
	return unsafe.Add(s.host, addr)
}

// An mbarrier is 64 bits of shared memory that programs must not look into.
// Here: 20 bits of arrivals still to come, 20 bits of arrivals a phase, 22 bits
// of bytes still to come (biased), and the phase. PTX ISA, "mbarrier".
const (
	mbarCount    = 1<<20 - 1
	mbarTxShift  = 40
	mbarTxMask   = 1<<22 - 1
	mbarTxBias   = 1 << 21
	mbarPhaseBit = 62
)

type mbarrier struct {
	pending, expected uint64
	tx                int64
	phase             uint64
}

func loadMbarrier(v uint64) mbarrier {
	return mbarrier{v & mbarCount, v >> 20 & mbarCount, int64(v>>mbarTxShift&mbarTxMask) - mbarTxBias, v >> mbarPhaseBit & 1}
}

func (b mbarrier) word() uint64 {
	return b.pending | b.expected<<20 | uint64(b.tx+mbarTxBias)<<mbarTxShift | b.phase<<mbarPhaseBit
}

// settle starts the next phase when nothing is left to wait for.
func (b *mbarrier) settle() {
	if b.pending == 0 && b.tx == 0 {
		b.phase ^= 1
		b.pending = b.expected
	}
}

// mbarrierOperation chooses the mbarrier family: a is the address, b the count, bytes,
// state or parity, d the state, the count or the predicate.
func (s *selection) mbarrierOperation() error {
	ir, in := s.ir, s.in
	if len(ir.Src) == 0 {
		return fmt.Errorf("an address is missing")
	}
	in.mode = ptxir.Mode(s.class(ir.Src[0]))
	if err := s.take(&in.a, ir.Src[0], register.Class(in.mode)); err != nil {
		return err
	}
	if len(ir.Src) > 1 {
		if err := s.take(&in.b, ir.Src[1], s.class(ir.Src[1])); err != nil {
			return err
		}
		in.members = uint32(s.class(ir.Src[1]))
	}
	in.site = s.d.newSite()
	if len(ir.Dst) > 0 && ir.Dst[0] != ptxir.NoReg {
		if err := s.take(&in.d, ir.Dst[0], s.class(ir.Dst[0])); err != nil {
			return err
		}
	}
	in.fn = mbarrierLanes
	return nil
}

//go:norace
func mbarrierLanes(w *warp, in *inst, m uint32) {
	s := w.site(in.site)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint64)(w.sharedPointer(in, s, w.atomAddress(in, l), l, 8))
		arg := uint64(1)
		if in.b != register.None {
			arg = w.Raw(in.b, register.Class(in.members), l)
		}
		*p = w.mbarrierLane(in, l, *p, arg)
	}
}

// mbarrierLane does one lane's operation and returns the barrier's new bits.
func (w *warp) mbarrierLane(in *inst, l int, old, arg uint64) uint64 {
	b := loadMbarrier(old)
	switch in.ir.Op {
	case ptxir.OpMbarInit:
		if arg == 0 || arg > mbarCount {
			w.fault(&laneFault{kind: FaultIllegal, in: in, lane: l, detail: fmt.Sprintf("an mbarrier for %d arrivals", arg)})
		}
		return mbarrier{pending: arg, expected: arg}.word()
	case ptxir.OpMbarInval:
		return 0
	case ptxir.OpMbarExpectTx:
		b.tx += int64(uint32(arg))
		return b.word()
	case ptxir.OpMbarTest:
		phase := arg & 1 // parity: of the phase that is waited for
		if in.ir.Mod&ptxir.ModParity == 0 {
			phase = loadMbarrier(arg).phase
		}
		w.SetPred(in.d, b.phase != phase, 1<<l)
		return old
	case ptxir.OpCpAsyncMbarrier:
		// The copies are done: without .noinc the arrival was also added to what
		// is expected, which leaves nothing.
		if in.ir.Mod&ptxir.ModNoInc == 0 {
			return old
		}
	}
	return w.mbarrierArrive(in, l, old, b, arg)
}

func (w *warp) mbarrierArrive(in *inst, l int, old uint64, b mbarrier, arg uint64) uint64 {
	count := arg
	if in.ir.Mod&ptxir.ModExpectTx != 0 {
		b.tx += int64(uint32(arg))
		count = 1
	}
	if count > b.pending {
		w.fault(&laneFault{kind: FaultIllegal, in: in, lane: l, detail: fmt.Sprintf("%d arrivals at an mbarrier that waits for %d", count, b.pending)})
	}
	if in.d != register.None {
		w.U64(in.d)[l] = old
	}
	b.pending -= count
	if in.ir.Mod&ptxir.ModDrop != 0 {
		b.expected -= count
	}
	b.settle()
	return b.word()
}

// mbarrierPending reads the arrivals still to come out of a state.
func (s *selection) mbarrierPending() error {
	s.in.fn = mbarrierPending
	return s.operands(&entry{dst: register.Class32, src: []register.Class{register.Class64}})
}

func mbarrierPending(w *warp, in *inst, m uint32) {
	d, a := w.U32(in.d), w.U64(in.a)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = uint32(loadMbarrier(a[l]).pending)
	}
}
