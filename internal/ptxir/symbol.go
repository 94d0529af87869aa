// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"slices"

	"github.com/cudago/cudago/internal/ptx"
)

// symbol is a name at module level: a variable or a function.
type symbol struct {
	name string
	v    *Var      // a variable
	fn   *function // a function
	kern *Kernel   // with fn, an entry
}

// function is a .func or .entry while lowering.
type function struct {
	tree *ptx.Function
	out  *Func
	// calls are the functions called by name.
	calls []*symbol
	// item is the place of the definition in the module.
	item int
}

var builtins = map[string]Builtin{
	"vprintf":      BuiltinVprintf,
	"__assertfail": BuiltinAssertFail,
	"malloc":       BuiltinMalloc,
	"free":         BuiltinFree,

	"__cuda_syscall_aligned_malloc": BuiltinAlignedMalloc,

	"cudaGraphSetConditional": BuiltinSetConditional,
}

// declare enters the names of the module.
func (l *loader) declare() {
	if l.tree.Major == 0 {
		l.fail(1, "the module has no .version")
	}
	if len(l.tree.Target) == 0 {
		l.fail(1, "the module has no .target")
	}
	if l.tree.AddressSize == 32 {
		panic(&UnsupportedError{
			Module: l.module.Name, Line: 1, Instruction: ".address_size 32", Reason: "addresses have 64 bits",
			Section: "PTX Module Directives: .address_size", Hint: "compile for a 64-bit machine",
		})
	}
	for i, item := range l.tree.Items {
		l.item = i
		switch x := item.(type) {
		case *ptx.Variable:
			l.declareVariable(x)
		case *ptx.Function:
			l.declareFunction(x)
		}
	}
	for _, item := range l.tree.Items {
		if x, ok := item.(*ptx.Alias); ok {
			l.declareAlias(x)
		}
	}
	for _, s := range l.bodies {
		if s.kern != nil {
			l.module.Kernels = append(l.module.Kernels, s.kern)
		} else {
			l.module.Funcs = append(l.module.Funcs, s.fn.out)
		}
	}
}

// enter makes a symbol.
func (l *loader) enter(s *symbol) *symbol {
	l.symbols[s.name] = s
	l.order[s.name] = l.item
	return s
}

// lookup returns the symbol that a name means at an item, or nil.
func (l *loader) lookup(name string, item int) *symbol {
	if first, ok := l.order[name]; !ok || first > item {
		return nil
	}
	return l.symbols[name]
}

func (l *loader) declareVariable(x *ptx.Variable) {
	if old := l.symbols[x.Name]; old != nil {
		// An extern declaration and its definition, in either order.
		if old.v == nil || !old.v.Extern && x.Linkage != ptx.Extern && x.Linkage != ptx.Weak && x.Linkage != ptx.Common {
			l.fail(x.Line, "%s is declared twice", x.Name)
		}
		if old.v.Extern && x.Linkage != ptx.Extern {
			old.v.Extern = false
			old.v.Size, old.v.Align = x.Bytes(), max(x.Alignment(), old.v.Align)
			l.addInit(old.v, x)
		}
		return
	}
	v := l.variable(x)
	l.enter(&symbol{name: x.Name, v: v})
	l.module.Vars = append(l.module.Vars, v)
}

// variable makes a Var for a declaration of memory, at any level.
func (l *loader) variable(x *ptx.Variable) *Var {
	v := &Var{
		Name:    x.Name,
		Type:    elementType(x),
		Align:   x.Alignment(),
		Size:    x.Bytes(),
		Extern:  x.Linkage == ptx.Extern,
		Managed: slices.Contains(x.Attributes, "managed"),
		Pos:     Pos{Line: x.Line},
	}
	switch x.Space {
	case ptx.SpaceGlobal, ptx.SpaceTex:
		v.Space = SpaceGlobal
	case ptx.SpaceConst:
		v.Space = SpaceConst
	case ptx.SpaceShared:
		v.Space = SpaceShared
		if v.Extern {
			// The dynamic shared memory, whatever size the declaration claims.
			v.Size = 0
		}
	case ptx.SpaceLocal:
		v.Space = SpaceLocal
	default:
		l.fail(x.Line, "a variable cannot be declared in .%s here", x.Space)
	}
	if x.Range != 0 {
		l.fail(x.Line, "%s<%d>: only registers can be declared in ranges", x.Name, x.Range)
	}
	l.unsized(x, v)
	l.addInit(v, x)
	return v
}

// unsized gives an array without a size that of its initialiser.
func (l *loader) unsized(x *ptx.Variable, v *Var) {
	if len(x.Dims) == 0 || x.Dims[0] != 0 || v.Extern {
		return
	}
	if x.Init == nil || x.Init.Kind != ptx.InitList {
		l.fail(x.Line, "%s has no size: only an .extern or initialised array may leave it out", x.Name)
	}
	row := uint64(max(x.Vector, 1)) * uint64(x.Type.Size())
	for _, d := range x.Dims[1:] {
		row *= uint64(d)
	}
	n := uint64(len(x.Init.Elems))
	if len(x.Dims) == 1 {
		n = (n + uint64(max(x.Vector, 1)) - 1) / uint64(max(x.Vector, 1))
	}
	x.Dims[0] = uint32(n)
	v.Size = row * n
}

func (l *loader) addInit(v *Var, x *ptx.Variable) {
	if x.Init == nil {
		return
	}
	if v.Space != SpaceGlobal && v.Space != SpaceConst {
		l.fail(x.Line, "%s: variables in .%s cannot have an initialiser", x.Name, v.Space)
	}
	if v.Extern {
		l.fail(x.Line, "%s: an .extern variable cannot have an initialiser", x.Name)
	}
	l.inits = append(l.inits, pendingInit{v, x, l.item})
}

func (l *loader) declareFunction(x *ptx.Function) {
	s := l.symbols[x.Name]
	if s == nil {
		s = l.enter(&symbol{name: x.Name, fn: &function{}})
		if x.Entry {
			s.kern = &Kernel{}
			s.fn.out = &s.kern.Func
		} else {
			s.fn.out = &Func{}
		}
		s.fn.out.Name = x.Name
	}
	switch {
	case s.fn == nil || (s.kern != nil) != x.Entry:
		l.fail(x.Line, "%s is declared as something else before", x.Name)
	case s.fn.tree != nil && s.fn.tree.Body != nil && x.Body != nil:
		l.fail(x.Line, "%s is defined twice, first on line %d", x.Name, s.fn.tree.Line)
	case s.fn.tree != nil && !sameParameters(s.fn.tree, x):
		l.fail(x.Line, "%s is declared with other parameters on line %d", x.Name, s.fn.tree.Line)
	case s.fn.tree == nil || x.Body != nil:
		s.fn.tree = x
	}
	if x.Body == nil {
		return
	}
	s.fn.item = l.item
	s.fn.out.Pos = Pos{Line: x.Line}
	l.bodies = append(l.bodies, s)
	if s.kern != nil {
		l.kernelHeader(s.kern, x)
	} else {
		s.fn.out.Params = l.parameters(x.Params)
		s.fn.out.Rets = l.parameters(x.Returns)
	}
}

// sameParameters compares two declarations of a function.
func sameParameters(a, b *ptx.Function) bool {
	same := func(x, y *ptx.Variable) bool {
		return x.Space == y.Space && x.Type == y.Type && x.Vector == y.Vector && slices.Equal(x.Dims, y.Dims)
	}
	return slices.EqualFunc(a.Params, b.Params, same) && slices.EqualFunc(a.Returns, b.Returns, same)
}

func (l *loader) declareAlias(x *ptx.Alias) {
	target := l.symbols[x.Target]
	if target == nil || target.fn == nil || target.kern != nil {
		l.fail(x.Line, ".alias %s: %s is no function of this module", x.Name, x.Target)
	}
	switch old := l.symbols[x.Name]; {
	case old == nil:
		l.fail(x.Line, ".alias %s: the name is not declared", x.Name)
	case old.fn == nil || old.fn.tree.Body != nil:
		l.fail(x.Line, ".alias %s: the name is already defined", x.Name)
	case target.fn.tree.Body == nil:
		l.fail(x.Line, ".alias %s: %s is declared only", x.Name, x.Target)
	case !sameParameters(old.fn.tree, target.fn.tree):
		l.fail(x.Line, ".alias %s: %s has other parameters", x.Name, x.Target)
	}
	l.symbols[x.Name] = target
}

// parameters makes the local variables that carry a .func's parameters.
// Registers get one too: a call moves bytes, and the body loads and stores.
func (l *loader) parameters(list []*ptx.Variable) []*Var {
	vars := make([]*Var, len(list))
	for i, x := range list {
		vars[i] = &Var{
			Name:  x.Name,
			Space: SpaceLocal,
			Type:  elementType(x),
			Align: x.Alignment(),
			Size:  max(x.Bytes(), uint64(max(x.Type.Size(), 1))),
			Pos:   Pos{Line: x.Line},
		}
	}
	return vars
}

// kernelHeader fills in what is known of an entry from its declaration.
func (l *loader) kernelHeader(k *Kernel, x *ptx.Function) {
	// PTX ISA, "Kernel Function Parameters".
	most := uint64(mostParams)
	if v := l.module.Version; v[0] < 8 || v == [2]int{8, 0} {
		most = mostParamsBefore81
	}
	total := uint64(0)
	for _, p := range x.Params {
		align := uint64(p.Alignment())
		if total = (total+align-1)&^(align-1) + p.Bytes(); total > most {
			l.fail(p.Line, "the parameters of %s exceed %d bytes", x.Name, most)
		}
	}
	for i, a := range ptx.Layout(x.Params) {
		p := x.Params[i]
		t := elementType(p)
		k.Args = append(k.Args, Param{Name: a.Name, Type: argType(p, t), Offset: a.Offset, Size: a.Size, Align: a.Align, Pointer: a.Pointer})
		k.Params = append(k.Params, &Var{
			Name: a.Name, Space: SpaceParam, Type: t, Align: a.Align, Size: uint64(a.Size),
			Offset: a.Offset, Pos: Pos{Line: p.Line},
		})
		k.ArgBytes = a.Offset + a.Size
	}
	seen := map[string]bool{}
	for _, d := range x.Directives {
		seen[d.Name] = true
		if seen["maxntid"] && seen["reqntid"] || seen["maxclusterrank"] && seen["reqnctapercluster"] {
			l.fail(d.Line, ".%s does not go with what stands in front of it", d.Name)
		}
		switch d.Name {
		case "maxntid":
			k.MaxThreads = extent(d.Args)
		case "reqntid":
			k.ReqThreads = extent(d.Args)
		case "minnctapersm":
			k.MinBlocks = uint32(d.Args[0])
		case "maxnreg":
			k.MaxRegs = uint32(d.Args[0])
		}
	}
}

func argType(p *ptx.Variable, t Type) Type {
	if len(p.Dims) > 0 || p.Vector != 0 {
		return B8
	}
	return t
}

// extent is a size in up to three dimensions; those left out are 1.
func extent(args []uint64) [3]uint32 {
	e := [3]uint32{1, 1, 1}
	for i := range min(len(args), 3) {
		e[i] = uint32(args[i])
	}
	return e
}

func elementType(x *ptx.Variable) Type {
	if x.Type >= ptx.TexRef {
		return B64
	}
	return typeByName[x.Type.String()]
}
