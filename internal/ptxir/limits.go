// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

// What a module may use, in bytes, as ptxas 13.5 has it from sm_75 to sm_90.
const (
	mostShared   = 48 << 10 // static, of a kernel; dynamic shared memory can be more
	mostConstant = 64 << 10
	mostParams   = 32764
	// mostParamsBefore81 was the limit before PTX ISA 8.1.
	mostParamsBefore81 = 4352
	// mostLocal is of one function. ptxas has no limit, and counts in 32 bits: code with
	// more has the wrong size. What a launch may use is far less: see package ptxvm.
	mostLocal = 1<<31 - 1
)

// checkLimits refuses a module that uses too much constant memory, or has a
// kernel that uses too much shared memory, or a function with too much local memory.
func (l *loader) checkLimits() {
	var constant uint64
	for _, v := range l.module.Vars {
		if v.Space != SpaceConst || v.Extern {
			continue
		}
		if constant = v.after(constant); constant > mostConstant {
			l.fail(v.Pos.Line, "the constant variables of the module exceed %d bytes", mostConstant)
		}
	}
	// Kernels may share functions, and each kernel's are walked: only where it matters.
	mayExceed := l.shared() > mostShared
	for _, k := range l.module.Kernels {
		if mayExceed {
			l.checkShared(k)
		}
		l.checkLocal(&k.Func)
	}
	for _, f := range l.module.Funcs {
		l.checkLocal(f)
	}
}

func (l *loader) checkShared(k *Kernel) {
	if n := k.staticShared(); n > mostShared {
		l.fail(k.Pos.Line, "%s has %d bytes of static shared memory, and may have %d: declare it .extern, and give its size at the launch",
			k.Name, n, mostShared)
	}
}

// checkLocal refuses a function whose local variables, among them what it passes
// and takes in calls, exceed what can be counted.
func (l *loader) checkLocal(f *Func) {
	var size uint64
	for _, list := range [][]*Var{f.Params, f.Rets, f.Vars} {
		for _, v := range list {
			if v.Space != SpaceLocal {
				continue
			}
			if size = v.after(size); size > mostLocal {
				l.fail(v.Pos.Line, "the local variables of %s exceed %d bytes", f.Name, mostLocal)
			}
		}
	}
}

// after is where a variable ends that stands behind end bytes of others.
func (v *Var) after(end uint64) uint64 {
	align := uint64(max(v.Align, 1))
	return (end+align-1)&^(align-1) + v.Size
}

// shared is the size of all shared variables at most: in whichever order.
func (l *loader) shared() (size uint64) {
	add := func(vars []*Var) {
		for _, v := range vars {
			if v.Space == SpaceShared && !v.Extern {
				size += v.Size + uint64(max(v.Align, 1)) - 1
			}
		}
	}
	add(l.module.Vars)
	for _, k := range l.module.Kernels {
		add(k.Vars)
	}
	for _, f := range l.module.Funcs {
		add(f.Vars)
	}
	return size
}

// staticShared is the size of the shared variables that a kernel and what it
// calls declare or name.
func (k *Kernel) staticShared() (size uint64) {
	placed := map[*Var]bool{}
	place := func(v *Var) {
		if v != nil && v.Space == SpaceShared && !v.Extern && !placed[v] {
			placed[v] = true
			size = v.after(size)
		}
	}
	called := map[*Func]bool{&k.Func: true}
	for work := []*Func{&k.Func}; len(work) > 0; work = work[1:] {
		f := work[0]
		for _, v := range f.Vars {
			place(v)
		}
		for i := range f.Consts {
			place(f.Consts[i].Var)
		}
		callees, _ := f.Callees()
		for _, g := range callees {
			if !called[g] {
				called[g] = true
				work = append(work, g)
			}
		}
	}
	return size
}

// Callees returns the functions that f calls by name. It also says whether f
// calls others through their addresses, without a list of which these may be.
func (f *Func) Callees() (named []*Func, others bool) {
	lists := map[**Func]bool{} // many calls may share a long one
	for i := range f.Blocks {
		call := f.Blocks[i].Term.Call
		switch {
		case call == nil || call.Builtin != BuiltinNone:
		case call.Func != nil:
			named = append(named, call.Func)
		case call.Callees == nil:
			others = true
		case !lists[&call.Callees[0]]:
			lists[&call.Callees[0]] = true
			named = append(named, call.Callees...)
		}
	}
	return named, others
}
