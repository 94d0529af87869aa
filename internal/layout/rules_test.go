// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package layout tests the rules of this tree that no compiler checks. The
// rules are in this file; check_test.go finds the violations.
//
// It reads the files itself, because Go's test cache answers from the last run
// where a test asks another program, such as go list, about the tree.
package layout

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const module = "github.com/cudago/cudago"

// root is the folder of go.mod, from here: a package's tests run in its folder.
const root = "../.."

// mayImport lists, for each package, the packages of this module that its
// non-test files may import. ARCHITECTURE.md draws the main ones.
var mayImport = map[string][]string{
	"pyext":           {"pyext/module", "pyext/api"},
	"pyext/module":    {"pyext/finalizer", "pyext/xla", "pyext/graph", "pyext/kernel", "pyext/tensor", "pyext/memory", "pyext/stream", "pyext/border", "dlpack", "pyext/api", "graph"},
	"pyext/finalizer": {"pyext/stream", "pyext/border", "dlpack", "internal/finalize"},
	"pyext/xla":       {"pyext/kernel", "pyext/tensor", "pyext/memory", "pyext/stream", "pyext/border", "dlpack", "cuda"},
	"pyext/graph":     {"pyext/kernel", "pyext/tensor", "pyext/memory", "pyext/stream", "pyext/border", "dlpack", "graph", "cuda"},
	"pyext/kernel":    {"pyext/tensor", "pyext/memory", "pyext/stream", "pyext/border", "dlpack", "cuda"},
	"pyext/tensor":    {"pyext/memory", "pyext/stream", "pyext/border", "dlpack"},
	"pyext/memory":    {"pyext/stream", "pyext/border", "dlpack", "cuda"},
	"pyext/stream":    {"pyext/border", "dlpack", "graph", "cuda"},
	"pyext/border":    {"dlpack", "cuda", "internal/finalize", "internal/memfault"},
	"pyext/api":       {"cuda"},
	"graph":           {"cuda", "internal/finalize", "internal/ordered"},
	"dlpack":          {},
	"cuda":            {"cuda/internal/driver", "cuda/internal/nvrtc", "cuda/internal/nvjitlink", "cuda/internal/nvvm", "cuda/internal/codecache", "internal/cxxname", "internal/memfd", "internal/pathname", "internal/ptx"},

	"dlpack/dlpacktest": {"dlpack"}, // for tests, which may not use cgo themselves

	"cuda/internal/dl":                   {"internal/pathname"},
	"cuda/internal/nvrtc":                {"cuda/internal/dl", "internal/pathname"},
	"cuda/internal/nvjitlink":            {"cuda/internal/dl"},
	"cuda/internal/nvvm":                 {"cuda/internal/dl", "internal/pathname"},
	"cuda/internal/codecache":            {"internal/pathname"},
	"cuda/internal/driver":               {},
	"cuda/internal/driver/nvidia":        {"cuda/internal/driver", "cuda/internal/dl"},
	"cuda/internal/driver/nvidia/hostfn": {"cuda/internal/driver"}, // for tests
	"cuda/internal/driver/sim":           {"cuda/internal/driver", "internal/ptxvm", "internal/ptxvm/check", "internal/ptxvm/descriptor", "internal/ptxvm/fault", "internal/ptxvm/memory", "internal/ptxir", "internal/memfault", "internal/memfd", "internal/ordered"},
	"cuda/internal/driver/fault":         {"cuda/internal/driver"},
	"cuda/internal/driver/trace":         {"cuda/internal/driver"},
	"cuda/internal/driver/drivertest":    {"cuda/internal/driver"},

	"internal/cxxname":          {},
	"internal/growth":           {}, // for tests
	"internal/memfault":         {},
	"internal/memfd":            {},
	"internal/ordered":          {},
	"internal/pathname":         {},
	"internal/ptx":              {},
	"internal/ptxir":            {"internal/ptx"},
	"internal/ptxvm":            {"internal/ptxvm/check", "internal/ptxvm/lane", "internal/ptxvm/fault", "internal/ptxvm/memory", "internal/ptxvm/register", "internal/ptxir", "internal/memfault"},
	"internal/ptxvm/check":      {"internal/ptxvm/descriptor", "internal/ptxvm/lane", "internal/ptxvm/matrix", "internal/ptxvm/memory", "internal/ptxvm/shadow", "internal/ptxvm/register", "internal/ptxir"},
	"internal/ptxvm/lane":       {"internal/ptxvm/descriptor", "internal/ptxvm/fault", "internal/ptxvm/matrix", "internal/ptxvm/memory", "internal/ptxvm/numeric", "internal/ptxvm/register", "internal/ptxir"},
	"internal/ptxvm/lane/gen":   {"internal/ptxir"},
	"internal/ptxvm/fault":      {"internal/ptxvm/memory"},
	"internal/ptxvm/memory":     {"internal/memfd", "internal/ptxvm/shadow"},
	"internal/ptxvm/matrix":     {"internal/ptxvm/numeric", "internal/ptxvm/register", "internal/ptxir"},
	"internal/ptxvm/numeric":    {"internal/ptxir"},
	"internal/ptxvm/register":   {"internal/ptxir"},
	"internal/ptxvm/shadow":     {},
	"internal/ptxvm/descriptor": {},
	"internal/ptxvm/thin":       {}, // for tests, as the two below
	"internal/ptxvm/vmtest":     {"internal/ptxvm", "internal/ptxvm/check", "internal/ptxvm/fault", "internal/ptxir"},
	"internal/ptxvm/sweep":      {},
	"internal/ptxvm/benchsim":   {"internal/ptxvm", "internal/ptxvm/check", "internal/ptxir"},
	"internal/finalize":         {},
	"internal/gen":              {},
	"internal/layout":           {},
}

// mayAlsoImport are single files that may import what the rest of their
// package may not: the places that choose a driver.
var mayAlsoImport = map[string][]string{
	"cuda/open.go":       {"cuda/internal/driver/nvidia", "cuda/internal/driver/sim", "cuda/internal/driver/trace", "cuda/internal/driver/fault"},
	"cuda/open_fault.go": {"cuda/internal/driver/fault"},
}

// mayUseC are the packages at the two edges of the tree, dlpack's core, and the
// benchmarks' C floor, which is no part of the build.
var mayUseC = map[string]bool{
	"pyext":                              true,
	"pyext/border":                       true,
	"pyext/stream":                       true,
	"pyext/memory":                       true,
	"pyext/tensor":                       true,
	"pyext/kernel":                       true,
	"pyext/graph":                        true,
	"pyext/xla":                          true,
	"pyext/finalizer":                    true,
	"pyext/module":                       true,
	"cuda/internal/driver/nvidia":        true,
	"cuda/internal/driver/nvidia/hostfn": true,
	"cuda/internal/dl":                   true,
	"cuda/internal/nvrtc":                true,
	"cuda/internal/nvjitlink":            true,
	"cuda/internal/nvvm":                 true,
	"dlpack":                             true,
	"dlpack/dlpacktest":                  true,
	"benchmarks/cfloor":                  true,
}

// mayWorkOnNames are packages that name no file for users: generators, and what only
// tests run. All others have the names of files from package pathname.
var mayWorkOnNames = map[string]bool{
	"internal/gen":            true,
	"internal/layout":         true,
	"internal/ptxvm/benchsim": true,
	"internal/ptxvm/lane/gen": true,
	"internal/ptxvm/vmtest":   true,
}

// abiHeader tells C of the types of package driver, which uses no C itself: the
// edges towards Python and towards libcuda include it.
const abiHeader = "cuda/internal/driver/zabi.h"

// The caps are hard stops; CONTRIBUTING.md asks for half of them.
const (
	maxFileLines     = 800
	maxFunctionLines = 100
)

// dataTables are exempt from the cap on files.
var dataTables = map[string]bool{}

func TestLayout(t *testing.T) {
	require.Empty(t, violations(t, os.DirFS(root)))
}

func TestEveryRuleHasAPackage(t *testing.T) {
	packages := map[string]bool{}
	for _, f := range sources(t, os.DirFS(root)) {
		packages[path.Dir(f.path)] = true
	}
	for file := range mayAlsoImport {
		require.True(t, packages[path.Dir(file)], "mayAlsoImport names %s, whose package is gone", file)
	}
	for p := range mayImport {
		require.True(t, packages[p], "mayImport names %s, which is gone", p)
	}
	for p := range mayWorkOnNames {
		require.True(t, packages[p], "mayWorkOnNames names %s, which is gone", p)
	}
	for p := range mayUseC {
		require.True(t, packages[p], "mayUseC names %s, which is gone", p)
	}
}

// An arrow that nothing follows is permission that nobody asked for.
func TestEveryArrowIsFollowed(t *testing.T) {
	followed := map[string]bool{}
	for _, s := range sources(t, os.DirFS(root)) {
		if s.file == nil || s.isTest() {
			continue
		}
		for _, spec := range s.file.Imports {
			ours := strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
			followed[s.dir()+" → "+ours] = true
			followed[s.path+" → "+ours] = true
		}
	}
	var idle []string
	for _, arrows := range []map[string][]string{mayImport, mayAlsoImport} {
		for from, to := range arrows {
			for _, p := range to {
				if arrow := from + " → " + p; !followed[arrow] {
					idle = append(idle, arrow)
				}
			}
		}
	}
	require.Empty(t, idle)
}

// spdx is the head of every file in the planted trees.
const spdx = "// SPDX-FileCopyrightText: The cudago authors\n// SPDX-License-Identifier: Apache-2.0\n\n"

func TestPlantedViolations(t *testing.T) {
	tests := []struct{ name, file, text, want string }{
		{"import against the arrows", "dlpack/a.go",
			"package dlpack\n\nimport _ \"" + module + "/graph\"\n",
			"dlpack/a.go: may not import graph"},
		{"noun of CUDA in the border", "pyext/border/a.go",
			"// Package border has a comment.\npackage border\n\nimport _ \"" + module + "/graph\"\n",
			"pyext/border/a.go: may not import graph"},
		{"driver named outside of open.go", "cuda/stream.go",
			"package cuda\n\nimport _ \"" + module + "/cuda/internal/driver/sim\"\n",
			"cuda/stream.go: may not import cuda/internal/driver/sim"},
		{"package without arrows", "extra/a.go",
			"// Package extra is new.\npackage extra\n",
			"extra: not in mayImport; add it there and to ARCHITECTURE.md"},
		{"package without a comment", "internal/gen/a.go",
			"package gen\n",
			"internal/gen: no package comment"},
		{"no licence", "graph/a.go",
			"\npackage graph\n",
			"graph/a.go: does not begin with the two SPDX lines"},
		{"no licence in Python", "python/cudago/a.py",
			"x = 1\n",
			"python/cudago/a.py: does not begin with the two SPDX lines"},
		{"z file without a banner", "graph/za.go",
			"package graph\n",
			"graph/za.go: named like a generated file, but without the line that marks one"},
		{"z file in C without a banner", "dlpack/za.c",
			"int a;\n",
			"dlpack/za.c: named like a generated file, but without the line that marks one"},
		{"z module in Python without a banner", "python/cudago/_za.py",
			"# SPDX-FileCopyrightText: The cudago authors\n# SPDX-License-Identifier: Apache-2.0\n\nx = 1\n",
			"python/cudago/_za.py: named like a generated file, but without the line that marks one"},
		{"generated file without the z", "graph/a.go",
			"// Code generated by x; DO NOT EDIT.\n\npackage graph\n",
			"graph/a.go: generated, so its name must begin with z"},
		{"long file", "graph/a.go",
			"package graph\n" + strings.Repeat("\n", maxFileLines),
			"graph/a.go: 804 lines, at most 800"},
		{"long C file", "dlpack/a.c",
			strings.Repeat("\n", maxFileLines),
			"dlpack/a.c: 803 lines, at most 800"},
		{"long function", "graph/a.go",
			"package graph\n\nfunc (g *Graph) long() {\n" + strings.Repeat("\n", maxFunctionLines-1) + "}\n",
			"graph/a.go:6: Graph.long: 101 lines, at most 100"},
		{"long C function", "dlpack/a.c",
			"int f(void)\n{\n" + strings.Repeat("\n", maxFunctionLines-1) + "}\n",
			"dlpack/a.c:4: function of 102 lines, at most 100"},
		{"cgo in the middle", "graph/a.go",
			"package graph\n\nimport \"C\"\n",
			`graph/a.go: import "C" is for the edges`},
		{"C file in the middle", "graph/a.c",
			"int a;\n",
			"graph/a.c: C is for the edges"},
		{"unsafe in an ordinary file", "graph/a.go",
			"package graph\n\nimport \"unsafe\"\n\nvar x = unsafe.Slice((*byte)(nil), 0)\n",
			"graph/a.go:8: unsafe.Slice: the name of a file that does this ends in _unsafe.go"},
		{"conversion to unsafe.Pointer", "graph/a.go",
			"package graph\n\nimport \"unsafe\"\n\nvar x = unsafe.Pointer(uintptr(1))\n",
			"graph/a.go:8: unsafe.Pointer(): the name of a file that does this ends in _unsafe.go"},
		{"name of a file that is cleaned", "cuda/a.go",
			"package cuda\n\nimport \"path/filepath\"\n\nvar x = filepath.Join(\"a\", \"../b\")\n",
			"cuda/a.go:8: filepath.Join works on text, where the system follows links: use internal/pathname"},
		{"name of a file that is cleaned, by another name", "cuda/a.go",
			"package cuda\n\nimport p \"path\"\n\nvar x = p.Dir\n",
			"cuda/a.go:8: path.Dir works on text, where the system follows links: use internal/pathname"},
		{"names that are all imported", "cuda/a.go",
			"package cuda\n\nimport . \"path\"\n\nvar x = Dir\n",
			"cuda/a.go:6: path under this name hides what it does to the names of files"},
		{"faults made panics where others' handlers come first", "graph/a.go",
			"package graph\n\nimport \"runtime/debug\"\n\nfunc f() { debug.SetPanicOnFault(true) }\n",
			"graph/a.go:8: debug.SetPanicOnFault: internal/memfault does this"},
		{"path of one machine", "docs/a.md",
			"see /ro" + "ot/x\n",
			"docs/a.md:1: path of one machine, or a registry's host"},
		{"registry host", "Makefile",
			"# SPDX-FileCopyrightText: The cudago authors\n# SPDX-License-Identifier: Apache-2.0\n\nx = proxy.go" + "lang.org\n",
			"Makefile:4: path of one machine, or a registry's host"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := fstest.MapFS{"graph/doc.go": {Data: []byte(spdx + "// Package graph has a comment.\npackage graph\n")}}
			tree["dlpack/doc.go"] = &fstest.MapFile{Data: []byte(spdx + "// Package dlpack has a comment.\npackage dlpack\n")}
			tree["cuda/doc.go"] = &fstest.MapFile{Data: []byte(spdx + "// Package cuda has a comment.\npackage cuda\n")}
			require.Empty(t, violations(t, tree))
			text := tt.text
			if !strings.Contains(tt.want, "SPDX") && !strings.Contains(text, "SPDX") && !strings.HasPrefix(text, "// Code") &&
				!strings.HasSuffix(tt.file, ".md") {
				text = spdx + text
			}
			tree[tt.file] = &fstest.MapFile{Data: []byte(text)}
			require.Equal(t, []string{tt.want}, violations(t, tree))
		})
	}
}

func TestWhatIsAllowed(t *testing.T) {
	tests := []struct{ name, file, text string }{
		{"driver named in open.go", "cuda/open.go",
			"package cuda\n\nimport _ \"" + module + "/cuda/internal/driver/sim\"\n"},
		{"any import in a test", "cuda/a_test.go",
			"package cuda\n\nimport _ \"" + module + "/cuda/internal/driver/fault\"\n"},
		{"name of the type unsafe.Pointer", "cuda/a.go",
			"package cuda\n\nimport \"unsafe\"\n\nfunc f(p unsafe.Pointer) {}\n"},
		{"unsafe with the right name", "cuda/a_unsafe.go",
			"package cuda\n\nimport \"unsafe\"\n\nvar x = unsafe.Pointer(uintptr(1))\n"},
		{"list of folders", "cuda/a.go",
			"package cuda\n\nimport \"path/filepath\"\n\nvar x = filepath.SplitList(\"a:b\")\n"},
		{"names in a test", "cuda/a_test.go",
			"package cuda\n\nimport \"path/filepath\"\n\nvar x = filepath.Join(\"a\", \"b\")\n"},
		{"C at an edge", "dlpack/a.c",
			"int a;\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := fstest.MapFS{
				"cuda/doc.go":   {Data: []byte(spdx + "// Package cuda has a comment.\npackage cuda\n")},
				"dlpack/doc.go": {Data: []byte(spdx + "// Package dlpack has a comment.\npackage dlpack\n")},
				tt.file:         {Data: []byte(spdx + tt.text)},
			}
			require.Empty(t, violations(t, tree))
		})
	}
}

// sources returns the files of the tree that rules apply to.
func sources(t *testing.T, tree fs.FS) []source {
	t.Helper()
	files, err := readTree(tree)
	require.NoError(t, err)
	return files
}

// violations returns one line for each broken rule, in the order of paths.
func violations(t *testing.T, tree fs.FS) []string {
	t.Helper()
	return checkTree(sources(t, tree))
}
