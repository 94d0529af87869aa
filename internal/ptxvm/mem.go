// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"fmt"
	"math/bits"
	"runtime"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// load chooses ld and ldu. One element is a generated function; a vector is one
// inst for each element, behind a check of the whole vector's alignment.
func (s *selection) load() error {
	if len(s.ir.Src) != 1 || len(s.ir.Dst) == 0 {
		return fmt.Errorf("a load wants an address and a destination")
	}
	if s.ir.Space == ptxir.SpaceParam && s.loadParam() {
		return nil
	}
	if s.ir.Type == ptxir.B128 {
		return s.accessWide(s.ir.Dst, loadWide)
	}
	if err := s.access(s.ir.Dst, true); err != nil {
		return err
	}
	s.ordered()
	return nil
}

func (s *selection) store() error {
	if len(s.ir.Src) < 2 {
		return fmt.Errorf("a store wants an address and a value")
	}
	if s.ir.Type == ptxir.B128 {
		return s.accessWide(s.ir.Src[1:], storeWide)
	}
	if err := s.access(s.ir.Src[1:], false); err != nil {
		return err
	}
	s.ordered()
	return nil
}

// access chooses the transfer of each element.
func (s *selection) access(elements []ptxir.Reg, isLoad bool) error {
	if s.isWhole(elements, isLoad) {
		if isLoad {
			return s.whole(elements, loadWhole)
		}
		return s.whole(elements, storeWhole)
	}
	size := s.ir.Type.Size()
	var parts []inst
	last := -1 // the element whose register is the address goes last
	for i, r := range elements {
		if r == ptxir.NoReg {
			continue
		}
		part := inst{
			d: register.None, a: register.None, b: register.None, c: register.None, members: register.None, guard: register.None,
			ir: s.ir, mode: s.ir.Mode, imm: uint64(s.ir.Imm + int64(i*size)), site: s.d.newSite(),
		}
		if err := s.element(&part, r, isLoad); err != nil {
			return err
		}
		if isLoad && r == s.ir.Src[0] {
			last = len(parts)
		}
		parts = append(parts, part)
	}
	if len(parts) == 1 && len(elements) == 1 {
		*s.in = parts[0]
		return nil
	}
	if last >= 0 {
		parts = append(append(parts[:last:last], parts[last+1:]...), parts[last])
	}
	s.in.parts = parts
	s.in.a = s.d.fn.offsets[s.ir.Src[0]]
	s.in.b = uint32(len(elements) * size)
	s.in.fn = transferVector
	if s.class(s.ir.Src[0]) == register.Class32 {
		s.in.fn = transferVector32
	}
	return nil
}

// element sets up the transfer of one element.
func (s *selection) element(part *inst, r ptxir.Reg, isLoad bool) error {
	op, space := ptxir.OpLd, s.ir.Space
	typ := unsignedType(s.ir.Type)
	if !isLoad {
		op = ptxir.OpSt
	}
	switch s.ir.Type {
	case ptxir.F16, ptxir.BF16:
		typ = ptxir.U16
	case ptxir.F32, ptxir.F16x2, ptxir.BF16x2, ptxir.TF32:
		typ = ptxir.U32
	case ptxir.F64, ptxir.F32x2:
		typ = ptxir.U64
	}
	if !isLoad { // a store takes the low bits, whatever the sign
		typ = unsignedType(bitsType(typ))
	}
	switch space {
	case ptxir.SpaceConst: // constants live in ordinary memory
		space = ptxir.SpaceGlobal
	case ptxir.SpaceParam: // indexed parameters: rare, and windowed like shared
		space = ptxir.SpaceShared
	}
	key := opKey{op: op, typ: typ, space: space, dst: s.class(r), src: s.class(s.ir.Src[0])}
	e := executors()[key]
	if e == nil {
		return errNoExecutor
	}
	part.fn = e.fn
	if err := s.take(&part.a, s.ir.Src[0], key.src); err != nil {
		return err
	}
	place := &part.d
	if !isLoad {
		place = &part.b
	}
	return s.take(place, r, key.dst)
}

func (d *decoder) newSite() uint32 {
	d.sites++
	return d.sites - 1
}

// transferVector moves the elements of a vector one after the other.
func transferVector(w *warp, in *inst, m uint32) {
	a := w.U64(in.a)
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		w.checkVector(in, a[l]+in.imm, l)
	}
	for i := range in.parts {
		in.parts[i].fn(w, &in.parts[i], m)
	}
}

func transferVector32(w *warp, in *inst, m uint32) {
	a := w.U32(in.a)
	for n := m; n != 0; n &= n - 1 {
		l := bits.TrailingZeros32(n) & 31
		w.checkVector(in, uint64(a[l]+uint32(in.imm)), l)
	}
	for i := range in.parts {
		in.parts[i].fn(w, &in.parts[i], m)
	}
}

func (w *warp) checkVector(in *inst, addr uint64, l int) {
	if addr&uint64(in.b-1) != 0 {
		w.fault(&laneFault{kind: FaultMisaligned, in: in, lane: l, addr: addr, size: uint64(in.b)})
	}
}

// loadParam chooses the load of a kernel parameter at a place known now, which
// is nearly every one: the value is the same for all lanes. It reports false
// for others.
func (s *selection) loadParam() bool {
	c := s.d.known[s.ir.Src[0]]
	if c == nil || c.Var == nil || c.Var.Space != ptxir.SpaceParam || c.Generic {
		return false
	}
	size := uint64(s.ir.Type.Size())
	offset := uint64(c.Var.Offset) + c.Bits + uint64(s.ir.Imm)
	if offset%size != 0 || offset+size*uint64(len(s.ir.Dst)) > uint64(s.d.kernel.ir.ArgBytes) {
		return false
	}
	for i, r := range s.ir.Dst {
		if r == ptxir.NoReg {
			continue
		}
		class := s.class(r)
		if class == register.ClassPred {
			return false
		}
		s.in.params = append(s.in.params, paramLoad{s.d.fn.offsets[r], class, offset + uint64(i)*size, s.ir.Type})
	}
	s.in.fn = loadParams
	return true
}

// paramLoad is a register that gets a kernel parameter.
type paramLoad struct {
	reg    uint32
	class  register.Class
	offset uint64
	typ    ptxir.Type
}

func loadParams(w *warp, in *inst, m uint32) {
	for i := range in.params {
		w.loadParam(&in.params[i], m)
	}
}

// loadParam reads a parameter once for all lanes.
func (w *warp) loadParam(p *paramLoad, m uint32) {
	size := p.typ.Size()
	var v uint64
	for i, b := range w.cta.params[p.offset:][:size] {
		v |= uint64(b) << (8 * i)
	}
	if p.typ.Signed() {
		v = uint64(int64(v<<(64-8*size)) >> (64 - 8*size))
	}
	w.Fill(p.reg, ptxir.Class(p.class-1), v, m)
}

// window is the generic address of a space's first byte.
func window(space ptxir.Space) (uint64, bool) {
	switch space {
	case ptxir.SpaceShared:
		return memory.SharedBase, true
	case ptxir.SpaceLocal:
		return memory.LocalBase, true
	case ptxir.SpaceParam:
		return memory.ParamBase, true
	case ptxir.SpaceGlobal, ptxir.SpaceConst, ptxir.SpaceGeneric:
		return 0, true
	}
	return 0, false
}

// cvta adds or subtracts the window of a space; global addresses are generic
// as they are.
func (s *selection) cvta() error {
	base, ok := window(s.ir.Space)
	if !ok || s.ir.Type.Size() != 8 {
		return errNoExecutor
	}
	s.in.imm = base
	if s.ir.Mod&ptxir.ModTo != 0 {
		s.in.imm = -base
	}
	s.in.fn = addConstant
	if base == 0 {
		s.in.fn = mov64
	}
	return s.operands(&entry{dst: register.Class64, src: []register.Class{register.Class64}})
}

func addConstant(w *warp, in *inst, m uint32) {
	d, a := w.U64(in.d), w.U64(in.a)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		d[l] = a[l] + in.imm
	}
}

// isspacep tells by the window whether a generic address is in a space; const
// and global share one and are told apart by the allocation.
func (s *selection) isspacep() error {
	s.in.imm = uint64(s.ir.Space)
	s.in.fn = isspacep
	return s.operands(&entry{dst: register.ClassPred, src: []register.Class{register.Class64}})
}

func isspacep(w *warp, in *inst, m uint32) {
	a := w.U64(in.a)
	d := w.Pred(in.d)
	for ; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		*d &^= 1 << l
		if w.inSpace(ptxir.Space(in.imm), a[l]) {
			*d |= 1 << l
		}
	}
}

func (w *warp) inSpace(space ptxir.Space, addr uint64) bool {
	top := addr >> memory.WindowShift
	switch space {
	case ptxir.SpaceShared:
		return top == memory.SharedWindow
	case ptxir.SpaceLocal:
		return top == memory.LocalWindow
	case ptxir.SpaceParam:
		return top == memory.ParamWindow
	}
	if top == memory.SharedWindow || top == memory.LocalWindow || top == memory.ParamWindow {
		return false
	}
	return w.cta.kernel.module.isConst(addr) == (space == ptxir.SpaceConst)
}

// isConst reports whether addr lies in one of the module's .const variables.
func (m *Module) isConst(addr uint64) bool {
	for v, base := range m.globals {
		if v.Space == ptxir.SpaceConst && addr-base < v.Size {
			return true
		}
	}
	return false
}

// fence orders a warp's accesses before it with those after it, as other blocks
// see them. Within the block there is nothing to order: it runs in one
// goroutine.
func (s *selection) fence() error {
	s.in.fn = fence
	return nil
}

// fence is a read-modify-write of a word of the warp's own, which is a full
// barrier on the hosts that Go runs on.
func fence(w *warp, _ *inst, _ uint32) { w.fences.Add(1) }

// weakHost says that the host reorders plain loads and stores, so that
// ld.acquire and st.release need a barrier of their own.
const weakHost = runtime.GOARCH != "amd64"

// ordered puts barriers around an access that has an order, where the host
// needs them.
func (s *selection) ordered() {
	if !weakHost || s.ir.Mod&(ptxir.ModAcquire|ptxir.ModRelease|ptxir.ModVolatile) == 0 {
		return
	}
	plain := *s.in
	s.in.parts = []inst{plain}
	s.in.fn = orderedAccess
}

func orderedAccess(w *warp, in *inst, m uint32) {
	fence(w, in, m)
	in.parts[0].fn(w, &in.parts[0], m)
	fence(w, in, m)
}

// nanosleep takes no time, but who sleeps has nothing to do: it gives way soon.
func (s *selection) nanosleep() error {
	s.in.fn = func(w *warp, _ *inst, _ uint32) { w.fuel -= spinCost }
	return nil
}

func (s *selection) nothing() error {
	s.in.fn = nothing
	return nil
}

func nothing(*warp, *inst, uint32) {}
