// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// reachable returns f and all functions that it may call, f first. A function that
// cannot run is an error if it is called by name, and is left out if it is one of
// those that a call through a pointer may reach.
func (m *Module) reachable(f *ptxir.Func) ([]*ptxir.Func, error) {
	seen := map[*ptxir.Func]bool{f: true}
	list := []*ptxir.Func{f}
	add := func(callees ...*ptxir.Func) {
		for _, callee := range callees {
			if !seen[callee] {
				seen[callee] = true
				list = append(list, callee)
			}
		}
	}
	for i := 0; i < len(list); i++ { //nolint:intrange // the list grows meanwhile
		g := list[i]
		if g.Err != nil {
			return nil, g.Err
		}
		named, others := g.Callees()
		add(named...)
		if others {
			add(m.addressed()...)
		}
	}
	return list, nil
}

// addressed returns the functions that can run and whose addresses are taken
// anywhere in the module: another kernel may have left an address in memory,
// as that of a virtual function is in an object.
//
// Preconditions: m.mu must be locked.
func (m *Module) addressed() []*ptxir.Func {
	if m.pointedTo != nil {
		return m.pointedTo
	}
	taken := map[*ptxir.Func]bool{}
	visit := func(f *ptxir.Func) {
		for i := range f.Consts {
			taken[f.Consts[i].Func] = true
		}
	}
	for _, k := range m.ir.Kernels {
		visit(&k.Func)
	}
	for _, f := range m.ir.Funcs {
		visit(f)
	}
	for _, v := range m.ir.Vars {
		for i := range v.Relocs {
			taken[v.Relocs[i].Func] = true
		}
	}
	m.pointedTo = []*ptxir.Func{}
	for _, f := range m.ir.Funcs {
		if taken[f] && f.Err == nil {
			m.pointedTo = append(m.pointedTo, f)
		}
	}
	return m.pointedTo
}

// noCallee says why a call site has no function for an address.
func (m *Module) noCallee(addr uint64) string {
	for _, f := range m.ir.Funcs {
		switch {
		case m.funcAddress(f) != addr:
		case f.Err != nil:
			return fmt.Sprintf("call of %s: %s", f.Name, f.Err)
		default:
			return fmt.Sprintf("call of %s, which has other parameters or is not among the targets", f.Name)
		}
	}
	return fmt.Sprintf("call of %#x, which is no function of its module", addr)
}

// mostShared is more shared memory than any device has, and can be counted in 32 bits.
const mostShared = 1 << 30

// layoutShared places the shared variables that the kernel can reach, static
// ones first, behind what is reserved; the dynamic ones (.extern .shared x[]) all
// start after them. Places count from the first byte that is the block's own. It
// fails if they are more than any device has: package ptxir does not count those
// of functions that are called through their addresses.
func (d *decoder) layoutShared(reach []*ptxir.Func) error {
	var dynamic []*ptxir.Var
	var end, dynAlign uint64 = 0, 16
	start := d.module.device.config.reservedShared()
	aligned := func(off, align uint64) uint64 { return (start+off+align-1)&^(align-1) - start }
	visit := func(v *ptxir.Var) {
		if v == nil || v.Space != ptxir.SpaceShared {
			return
		}
		if _, done := d.shared[v]; done {
			return
		}
		align := uint64(max(v.Align, 1))
		if v.Size == 0 {
			d.shared[v] = 0
			dynamic = append(dynamic, v)
			dynAlign = max(dynAlign, align)
			return
		}
		end = aligned(end, align)
		d.shared[v] = uint32(end)
		end += v.Size
	}
	for _, f := range reach {
		for i := range f.Consts {
			visit(f.Consts[i].Var)
		}
	}
	static := end
	if len(dynamic) > 0 {
		end = aligned(end, dynAlign)
	}
	if end > mostShared {
		return fmt.Errorf("ptxvm: kernel %s: it and the functions that it may call have %d bytes of static shared memory", d.kernel.ir.Name, end)
	}
	d.kernel.staticShared, d.kernel.dynamicOffset = uint32(static), uint32(end)
	for _, v := range dynamic {
		d.shared[v] = uint32(end)
	}
	return nil
}

// localNeed returns the local memory of one thread: the deepest chain of calls,
// or the device's stack size where functions call themselves or through
// pointers.
func (d *decoder) localNeed(reach []*ptxir.Func) uint64 {
	const open = ^uint64(0)
	need := map[*ptxir.Func]uint64{}
	unbounded := false
	var visit func(f *ptxir.Func) uint64
	visit = func(f *ptxir.Func) uint64 {
		if n, ok := need[f]; ok {
			unbounded = unbounded || n == open
			return n
		}
		need[f] = open
		var deepest uint64
		for b := range f.Blocks {
			call := f.Blocks[b].Term.Call
			if call == nil || call.Builtin != ptxir.BuiltinNone {
				continue
			}
			if call.Func == nil {
				unbounded = true
				continue
			}
			if n := visit(call.Func); n != open {
				deepest = max(deepest, n)
			}
		}
		need[f] = deepest + uint64(d.funcs[f].localBytes)
		return need[f]
	}
	n := visit(reach[0])
	if unbounded {
		n += uint64(d.module.device.config.StackBytes)
	}
	return n
}

// allocateVars gives the module's variables their memory and initial values.
func (m *Module) allocateVars() error {
	mem := m.device.memory
	for _, v := range m.ir.Vars {
		if (v.Space != ptxir.SpaceGlobal && v.Space != ptxir.SpaceConst) || v.Extern {
			continue
		}
		alloc := mem.AllocVariable
		if v.Managed {
			alloc = mem.AllocManagedVariable
		}
		addr, err := alloc(max(v.Size, 1), v.Name, "module "+m.ir.Name)
		if err != nil {
			return fmt.Errorf("ptxvm: variable %s of module %s: %w", v.Name, m.ir.Name, err)
		}
		m.globals[v] = addr
		if v.Space == ptxir.SpaceConst {
			m.consts = append(m.consts, lane.Extent{Base: addr, Size: v.Size})
		}
	}
	for v, addr := range m.globals {
		if err := m.initialise(v, addr); err != nil {
			return err
		}
	}
	return nil
}

func (m *Module) initialise(v *ptxir.Var, addr uint64) error {
	out, err := m.device.memory.Slice(addr, v.Size)
	if err != nil {
		return err
	}
	clear(out[copy(out, v.Init):])
	for _, r := range v.Relocs {
		var target uint64
		switch {
		case r.Func != nil:
			target = m.funcAddress(r.Func)
		case r.Var.Space == ptxir.SpaceGlobal || r.Var.Space == ptxir.SpaceConst:
			a, ok := m.globals[r.Var]
			if !ok {
				return fmt.Errorf("ptxvm: initialiser of %s: variable %s is defined nowhere", v.Name, r.Var.Name)
			}
			target = a
		default:
			return fmt.Errorf("ptxvm: initialiser of %s: address of %s variable %s", v.Name, r.Var.Space, r.Var.Name)
		}
		target = (target + uint64(r.Addend)) >> r.Shift
		switch end := r.Offset + uint64(r.Size); {
		case end > uint64(len(out)):
			return fmt.Errorf("ptxvm: initialiser of %s is longer than the variable", v.Name)
		case r.Size == 8:
			binary.LittleEndian.PutUint64(out[r.Offset:], target)
		case r.Size == 4:
			binary.LittleEndian.PutUint32(out[r.Offset:], uint32(target))
		default:
			out[r.Offset] = byte(target)
		}
	}
	return nil
}

// funcWindow is the top byte of function addresses. Nothing can be read there.
const funcWindow = 0x14

// funcAddress returns the address of a device function, for indirect calls.
func (m *Module) funcAddress(f *ptxir.Func) uint64 {
	for i, g := range m.ir.Funcs {
		if g == f {
			return funcWindow<<memory.WindowShift | 1<<55 | uint64(i+1)<<4
		}
	}
	for i, k := range m.ir.Kernels {
		if &k.Func == f {
			return funcWindow<<memory.WindowShift | 1<<55 | uint64(i+1)<<32
		}
	}
	panic("BUG: address of a function of another module: " + f.Name)
}

// Attributes returns what cuFuncGetAttribute reports.
func (k *Kernel) Attributes() KernelAttributes {
	var regs, consts uint64
	for _, c := range k.entry.ir.Regs {
		switch c {
		case ptxir.Class64:
			regs += 2
		case ptxir.Class32, ptxir.Class16:
			regs++
		}
	}
	for _, v := range k.module.ir.Vars {
		if v.Space == ptxir.SpaceConst {
			consts += v.Size
		}
	}
	return KernelAttributes{
		StaticSharedBytes: k.staticShared,
		ConstBytes:        uint32(consts),
		LocalBytes:        uint32(min(k.localBytes, math.MaxInt32)),
		Registers:         uint32(min(max(regs, 8), 255)),
		MaxThreads:        k.maxThreads(),
		PTXVersion:        10*k.module.ir.Version[0] + k.module.ir.Version[1],
	}
}

func (k *Kernel) maxThreads() uint32 {
	for _, limit := range [][3]uint32{k.ir.ReqThreads, k.ir.MaxThreads} {
		if limit != [3]uint32{} {
			return max(limit[0], 1) * max(limit[1], 1) * max(limit[2], 1)
		}
	}
	return lane.MaxThreads
}
