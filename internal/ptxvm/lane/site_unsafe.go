// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"unsafe"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// Site is the range that a memory instruction hit last. An address is inside
// if its distance from base is less than span, which is the size of the range
// less that of the access, plus one. The zero site contains nothing.
type Site struct {
	Base   uint64
	Span   uint64
	stride uint64 // local memory: bytes from one thread's to the next's; else 0
	Host   unsafe.Pointer
}

// pointer returns the host address for one lane's access of size bytes.
func (w *Warp) pointer(in *Inst, s *Site, addr uint64, l int, size uint64) unsafe.Pointer {
	if addr-s.Base >= s.Span || addr&(size-1) != 0 {
		w.miss(in, s, addr, l, size)
	}
	return unsafe.Add(s.Host, addr-s.Base+uint64(w.Index*register.Lanes+l)*s.stride)
}

// miss finds the range for an access that the site does not contain, or stops
// the kernel. The address must be a multiple of size, a power of two.
func (w *Warp) miss(in *Inst, s *Site, addr uint64, l int, size uint64) {
	if addr&(size-1) != 0 {
		w.Fault(&Stop{Kind: fault.Misaligned, In: in, Lane: l, Addr: addr, Size: size})
	}
	ok := false
	switch in.IR.Space {
	case ptxir.SpaceShared:
		*s, ok = w.SharedSite(0, addr), true
	case ptxir.SpaceLocal:
		*s, ok = w.localSite(0), true
	case ptxir.SpaceParam:
		*s, ok = w.paramSite(0), true
	case ptxir.SpaceGlobal, ptxir.SpaceConst:
		*s, ok = w.globalSite(addr, size)
	default:
		*s, ok = w.GenericSite(addr, size)
	}
	// From here span is the size of the range.
	if off := addr - s.Base; !ok || off >= s.Span || size > s.Span-off {
		space, limit := in.IR.Space, s.Span
		*s = Site{}
		w.Fault(&Stop{Kind: fault.IllegalAddress, In: in, Lane: l, Addr: addr, Size: size, Space: space, Limit: limit})
	}
	if stores(in) && w.CTA.Memory.ReadOnly(addr, size) {
		*s = Site{}
		w.Fault(&Stop{Kind: fault.IllegalAddress, In: in, Lane: l, Addr: addr, Size: size, Space: in.IR.Space, Detail: "a store into read-only memory"})
	}
	s.Span -= size - 1
}

// stores reports whether the instruction may write to memory by its address. A
// site belongs to one instruction, so that what only reads pays nothing.
func stores(in *Inst) bool { return in.IR.Op == ptxir.OpSt || in.IR.Op == ptxir.OpAtom }

// GenericSite finds the range for an access by a generic address.
func (w *Warp) GenericSite(addr, size uint64) (Site, bool) {
	switch addr >> memory.WindowShift {
	case memory.SharedWindow:
		return w.SharedSite(memory.SharedBase, addr), true
	case memory.LocalWindow:
		return w.localSite(memory.LocalBase), true
	case memory.ParamWindow:
		return w.paramSite(memory.ParamBase), true
	}
	return w.globalSite(addr, size)
}

// SharedSite is the part of shared memory that an address is in: the block's own,
// or what is reserved. The window begins at base.
func (w *Warp) SharedSite(base, addr uint64) Site {
	c := w.CTA
	if r := c.reserved; addr-base < uint64(len(r)) {
		return Site{Base: base, Span: uint64(len(r)), Host: unsafe.Pointer(unsafe.SliceData(r))}
	}
	return Site{Base: base + c.SharedStart, Span: c.SharedBytes, Host: c.sharedHost()}
}

func (w *Warp) localSite(base uint64) Site {
	return Site{Base: base, Span: w.CTA.LocalStride, stride: w.CTA.LocalStride, Host: w.CTA.localHost()}
}

func (w *Warp) paramSite(base uint64) Site {
	return Site{Base: base, Span: w.CTA.ArgBytes, Host: w.CTA.paramHost()}
}

func (w *Warp) globalSite(addr, size uint64) (Site, bool) {
	r, ok := w.CTA.Memory.Reach(addr, size)
	return Site{Base: r.Base, Span: r.Size, Host: r.Host}, ok
}

// Bytes is a piece of the range as a slice; thread selects local memory.
func (s *Site) Bytes(addr, size uint64, thread int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(s.Host, addr-s.Base+uint64(thread)*s.stride)), size)
}
