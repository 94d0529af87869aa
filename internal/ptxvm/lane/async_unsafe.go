// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/fault"
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
	in.Mode = ptxir.Mode(s.class(ir.Src[0]))
	if err := s.take(&in.A, ir.Src[0], register.Class(in.Mode)); err != nil {
		return err
	}
	if err := s.take(&in.B, ir.Src[1], register.Class64); err != nil {
		return err
	}
	if len(ir.Src) == 3 {
		class := register.Class32
		if ir.Mod&ptxir.ModIgnoreSrc != 0 {
			class = register.ClassPred
		}
		if err := s.take(&in.C, ir.Src[2], class); err != nil {
			return err
		}
	}
	in.Site = s.d.newSite()
	s.d.newSite() // the second, for the shared side
	in.Fn = cpAsync
	return nil
}

//go:norace
func cpAsync(w *Warp, in *Inst, m uint32) {
	size := in.Imm
	from, to := w.site(in.Site), w.site(in.Site+1)
	global := w.U64(in.B)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		n := size
		if in.C != register.None {
			if in.IR.Mod&ptxir.ModIgnoreSrc == 0 {
				n = min(size, uint64(w.U32(in.C)[l]))
			} else if *w.Pred(in.C)>>l&1 != 0 {
				n = 0
			}
		}
		dst := unsafe.Slice((*byte)(w.sharedPointer(in, to, w.address(in, l), l, size)), size)
		if n > 0 {
			w.align(in, global[l], l, size)
			if global[l]-from.Base >= from.Span {
				w.miss(in, from, global[l], l, 1)
			}
			if last := global[l] + n - 1; last-from.Base >= from.Span {
				w.miss(in, from, last, l, 1)
			}
			copy(dst, unsafe.Slice((*byte)(unsafe.Add(from.Host, global[l]-from.Base)), n))
		}
		clear(dst[n:])
	}
}

// address is a lane's address of an instruction whose mode is the class of its
// first operand.
func (w *Warp) address(in *Inst, l int) uint64 {
	if register.Class(in.Mode) == register.Class64 {
		return w.U64(in.A)[l]
	}
	return uint64(w.U32(in.A)[l])
}

func (w *Warp) align(in *Inst, addr uint64, l int, size uint64) {
	if addr&(size-1) != 0 {
		w.Fault(&Stop{Kind: fault.Misaligned, In: in, Lane: l, Addr: addr, Size: size})
	}
}

// sharedPointer resolves an address that must be in shared memory, as an offset
// or generic.
func (w *Warp) sharedPointer(in *Inst, s *Site, addr uint64, l int, size uint64) unsafe.Pointer {
	addr = sharedOffset(addr)
	w.align(in, addr, l, size)
	if addr-s.Base >= s.Span {
		*s = w.SharedSite(0, addr)
	}
	off := addr - s.Base
	if off >= s.Span || size > s.Span-off {
		w.Fault(&Stop{
			Kind: fault.IllegalAddress, In: in, Lane: l, Addr: addr, Size: size, Space: ptxir.SpaceShared, Limit: s.Span,
		})
	}
	return unsafe.Add(s.Host, off)
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
	in.Mode = ptxir.Mode(s.class(ir.Src[0]))
	if err := s.take(&in.A, ir.Src[0], register.Class(in.Mode)); err != nil {
		return err
	}
	if len(ir.Src) > 1 {
		if err := s.take(&in.B, ir.Src[1], s.class(ir.Src[1])); err != nil {
			return err
		}
		in.Members = uint32(s.class(ir.Src[1]))
	}
	in.Site = s.d.newSite()
	if len(ir.Dst) > 0 && ir.Dst[0] != ptxir.NoReg {
		if err := s.take(&in.D, ir.Dst[0], s.class(ir.Dst[0])); err != nil {
			return err
		}
	}
	in.Fn = mbarrierLanes
	return nil
}

//go:norace
func mbarrierLanes(w *Warp, in *Inst, m uint32) {
	s := w.site(in.Site)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		p := (*uint64)(w.sharedPointer(in, s, w.atomAddress(in, l), l, 8))
		arg := uint64(1)
		if in.B != register.None {
			arg = w.Raw(in.B, register.Class(in.Members), l)
		}
		*p = w.mbarrierLane(in, l, *p, arg)
	}
}

// mbarrierLane does one lane's operation and returns the barrier's new bits.
func (w *Warp) mbarrierLane(in *Inst, l int, old, arg uint64) uint64 {
	b := loadMbarrier(old)
	switch in.IR.Op {
	case ptxir.OpMbarInit:
		if arg == 0 || arg > mbarCount {
			w.Fault(&Stop{Kind: fault.Illegal, In: in, Lane: l, Detail: fmt.Sprintf("an mbarrier for %d arrivals", arg)})
		}
		return mbarrier{pending: arg, expected: arg}.word()
	case ptxir.OpMbarInval:
		return 0
	case ptxir.OpMbarExpectTx:
		b.tx += int64(uint32(arg))
		return b.word()
	case ptxir.OpMbarTest:
		phase := arg & 1 // parity: of the phase that is waited for
		if in.IR.Mod&ptxir.ModParity == 0 {
			phase = loadMbarrier(arg).phase
		}
		w.SetPred(in.D, b.phase != phase, 1<<l)
		return old
	case ptxir.OpCpAsyncMbarrier:
		// The copies are done. Without .noinc the arrival was also added to the
		// expected ones, so the two cancel out.
		if in.IR.Mod&ptxir.ModNoInc == 0 {
			return old
		}
	}
	return w.mbarrierArrive(in, l, old, b, arg)
}

func (w *Warp) mbarrierArrive(in *Inst, l int, old uint64, b mbarrier, arg uint64) uint64 {
	count := arg
	if in.IR.Mod&ptxir.ModExpectTx != 0 {
		b.tx += int64(uint32(arg))
		count = 1
	}
	if count > b.pending {
		w.Fault(&Stop{Kind: fault.Illegal, In: in, Lane: l, Detail: fmt.Sprintf("%d arrivals at an mbarrier that waits for %d", count, b.pending)})
	}
	if in.D != register.None {
		w.U64(in.D)[l] = old
	}
	b.pending -= count
	if in.IR.Mod&ptxir.ModDrop != 0 {
		b.expected -= count
	}
	b.settle()
	return b.word()
}

// mbarrierPending returns how many arrivals are still to come, from a state.
func (s *selection) mbarrierPending() error {
	s.in.Fn = mbarrierPending
	return s.operands(&entry{dst: register.Class32, src: []register.Class{register.Class64}})
}

func mbarrierPending(w *Warp, in *Inst, m uint32) {
	d, a := w.U32(in.D), w.U64(in.A)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = uint32(loadMbarrier(a[l]).pending)
	}
}
