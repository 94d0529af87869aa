// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"unsafe"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// site is the range that a memory instruction hit last. An address is inside
// if its distance from base is less than span, which is the size of the range
// less that of the access, plus one. The zero site contains nothing.
type site struct {
	base   uint64
	span   uint64
	stride uint64 // local memory: bytes from one thread's to the next's; else 0
	host   unsafe.Pointer
}

// pointer returns the host address for one lane's access of size bytes.
func (w *warp) pointer(in *inst, s *site, addr uint64, l int, size uint64) unsafe.Pointer {
	if addr-s.base >= s.span || addr&(size-1) != 0 {
		w.miss(in, s, addr, l, size)
	}
	return unsafe.Add(s.host, addr-s.base+uint64(w.index*register.Lanes+l)*s.stride)
}

// miss finds the range for an access that the site does not contain, or stops
// the kernel. The address must be a multiple of size, a power of two.
func (w *warp) miss(in *inst, s *site, addr uint64, l int, size uint64) {
	if addr&(size-1) != 0 {
		w.fault(&laneFault{kind: FaultMisaligned, in: in, lane: l, addr: addr, size: size})
	}
	ok := false
	switch in.ir.Space {
	case ptxir.SpaceShared:
		*s, ok = w.sharedSite(0), true
	case ptxir.SpaceLocal:
		*s, ok = w.localSite(0), true
	case ptxir.SpaceParam:
		*s, ok = w.paramSite(0), true
	case ptxir.SpaceGlobal, ptxir.SpaceConst:
		*s, ok = w.globalSite(addr, size)
	default:
		*s, ok = w.genericSite(addr, size)
	}
	// From here span is the size of the range.
	if off := addr - s.base; !ok || off >= s.span || size > s.span-off {
		space, limit := in.ir.Space, s.span
		*s = site{}
		w.fault(&laneFault{kind: FaultIllegalAddress, in: in, lane: l, addr: addr, size: size, space: space, limit: limit})
	}
	s.span -= size - 1
}

func (w *warp) genericSite(addr, size uint64) (site, bool) {
	switch addr >> memory.WindowShift {
	case memory.SharedWindow:
		return w.sharedSite(memory.SharedBase), true
	case memory.LocalWindow:
		return w.localSite(memory.LocalBase), true
	case memory.ParamWindow:
		return w.paramSite(memory.ParamBase), true
	}
	return w.globalSite(addr, size)
}

func (w *warp) sharedSite(base uint64) site {
	return site{base: base, span: w.cta.sharedBytes, host: w.cta.sharedHost()}
}

func (w *warp) localSite(base uint64) site {
	return site{base: base, span: w.cta.localStride, stride: w.cta.localStride, host: w.cta.localHost()}
}

func (w *warp) paramSite(base uint64) site {
	return site{base: base, span: uint64(w.cta.kernel.ir.ArgBytes), host: w.cta.paramHost()}
}

func (w *warp) globalSite(addr, size uint64) (site, bool) {
	r, ok := w.cta.kernel.module.device.memory.Reach(addr, size)
	return site{base: r.Base, span: r.Size, host: r.Host}, ok
}

// bytes is a piece of the range as a slice; thread selects local memory.
func (s *site) bytes(addr, size uint64, thread int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(s.host, addr-s.base+uint64(thread)*s.stride)), size)
}
