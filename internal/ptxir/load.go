// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"fmt"

	"github.com/cudago/cudago/internal/ptx"
)

// Lowering goes through a module in these passes, one file each:
//
//	symbol.go    names of the module: variables, functions, aliases
//	body.go      each body: scopes (scope.go), guards, statements to blocks
//	  form.go      mnemonics against the tables table_*.go (once per spelling)
//	  operand.go   operands to registers; constants and special registers too
//	  lower_*.go   the instruction families that need more than their table row
//	order.go     blocks in weak topological order: reverse post-order, loops whole
//	forward.go   moves of constants and special registers dropped
//	initial.go   initialisers to bytes and relocations
//	unsupported.go  which kernels reach something that cannot run
//
// What the executor may rely on: every operand is a register of exactly the
// class of its type, but for the elements of ld and st, whose registers may be
// wider; a destination or source that PTX declares wider than the type of cvt
// is extended or cut by a cvt of its own; a negated predicate is computed by a
// not; addresses with two offsets, as in cp.async, are added up; a store to or
// load from a .param of a call or .func is one to local memory.

// Load parses, checks and lowers a module. The name is what messages call it.
//
// What cannot run here makes only the kernels that reach it unusable: see
// [Module.Kernel] and [Module.Unsupported].
//
// Errors: a [*ptx.SyntaxError] for text that is not valid PTX, an
// [*UnsupportedError] for a module that cannot run as a whole.
func Load(name, text string) (m *Module, err error) {
	tree, err := ptx.Parse(text)
	if err != nil {
		return nil, err
	}
	return Lower(name, tree)
}

// Lower checks and lowers a parsed module. See [Load].
func Lower(name string, tree *ptx.Module) (m *Module, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *ptx.SyntaxError:
			m, err = nil, e
		case *UnsupportedError:
			m, err = nil, e
		default:
			panic(e)
		}
	}()
	l := newLoader(name, tree)
	l.declare()
	for _, f := range l.bodies {
		l.lowerBody(f)
	}
	// After the bodies, which may hold variables with initialisers too.
	l.initialize()
	l.markUnsupported()
	l.checkLimits()
	return l.module, nil
}

// Kernel returns the kernel called name.
//
// Errors: an [*UnsupportedError] when the kernel contains or calls what cannot
// run here, a [*NotFoundError] when there is no such kernel.
func (m *Module) Kernel(name string) (*Kernel, error) {
	for _, k := range m.Kernels {
		if k.Name == name {
			return k, k.Err
		}
	}
	return nil, &NotFoundError{Module: m.Name, Kernel: name}
}

// NotFoundError says that a module has no kernel of a name.
type NotFoundError struct{ Module, Kernel string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("ptx: module %s has no kernel %q", e.Module, e.Kernel)
}

// loader is the state of lowering one module.
type loader struct {
	module *Module
	tree   *ptx.Module
	// symbols are the names at module level.
	symbols map[string]*symbol
	// order has the place of each name's first declaration among the items: what
	// comes later cannot be used yet. item is the one being declared.
	order  map[string]int
	item   int
	bodies []*symbol // functions with a body, in textual order
	inits  []pendingInit
	// variants holds each mnemonic's meaning; the parser shares mnemonics.
	variants map[*ptx.Mnemonic]*variant
	scratch  []byte
}

func newLoader(name string, tree *ptx.Module) *loader {
	if name == "" {
		name = "module"
	}
	m := &Module{Name: name, Version: [2]int{tree.Major, tree.Minor}}
	if len(tree.Target) > 0 {
		m.Target = tree.Target[0]
	}
	const mostFiles = 1 << 16
	for n, file := range tree.Files {
		if n >= mostFiles {
			continue
		}
		for len(m.Files) <= n {
			m.Files = append(m.Files, "")
		}
		m.Files[n] = file
	}
	return &loader{
		module:   m,
		tree:     tree,
		symbols:  map[string]*symbol{},
		order:    map[string]int{},
		variants: map[*ptx.Mnemonic]*variant{},
	}
}

// fail stops lowering: the text is not valid PTX.
func (l *loader) fail(line int, format string, args ...any) {
	panic(ptx.ErrorAt(l.tree.Source, line, 1, fmt.Sprintf(format, args...)))
}
