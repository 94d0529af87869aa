// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// source is a text file of the tree; file is set for Go.
type source struct {
	path string
	text []byte
	fset *token.FileSet
	file *ast.File
}

func (s source) dir() string  { return path.Dir(s.path) }
func (s source) ext() string  { return path.Ext(s.path) }
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }
func (s source) isC() bool    { return slices.Contains([]string{".c", ".h", ".S"}, s.ext()) }
func (s source) isZ() bool {
	// A module of Python that is not public has one underscore more.
	return strings.HasPrefix(path.Base(s.path), "z") && (s.file != nil || s.isC()) ||
		strings.HasPrefix(path.Base(s.path), "_z") && s.ext() == ".py"
}
func (s source) isData() bool    { return strings.Contains(s.path, "testdata/") }
func (s source) isWrapper() bool { return strings.HasPrefix(s.path, "python/cudago/_gopy/") }

// generatedLine is Go's pattern for generated files, for the files that are
// not Go. It counts in their first lines only: generators have it further down.
var generatedLine = regexp.MustCompile(`(?m)^(//|#) Code generated .* DO NOT EDIT\.$`)

func (s source) isGenerated() bool {
	if s.file != nil {
		return ast.IsGenerated(s.file)
	}
	lines := bytes.SplitN(s.text, []byte("\n"), 9)
	head := bytes.Join(lines[:min(len(lines), 8)], []byte("\n"))
	return generatedLine.Match(head)
}

// built are folders that make or a tool fills.
var built = []string{"build", "dist", "shared", "__pycache__", "_build"}

// passedOver tells of a folder whether nothing in it is ours to check.
func passedOver(name string) bool {
	base := path.Base(name)
	return slices.Contains(built, base) || strings.HasPrefix(base, ".") && name != "." && name != ".ci"
}

// readTree returns the text files below the root, without what is built or
// hidden, but with the files of hidden folders that belong to the project.
func readTree(tree fs.FS) ([]source, error) {
	var files []source
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && passedOver(name):
			return fs.SkipDir
		case !d.Type().IsRegular() || name == ".git": // which is a file in a second tree of a repository
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			return err
		}
		s := source{path: name, text: text}
		if s.ext() == ".go" && !s.isData() {
			s.fset = token.NewFileSet()
			if s.file, err = parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
				return err
			}
		}
		files = append(files, s)
		return nil
	})
	return files, err
}

// checkTree returns one line for each broken rule.
func checkTree(files []source) []string {
	var bad []string
	commented := map[string]bool{}
	var packages []string
	for _, s := range files {
		bad = append(bad, checkPaths(s)...)
		if s.isData() {
			continue
		}
		bad = append(bad, checkHead(s)...)
		bad = append(bad, checkLength(s)...)
		if s.isC() && !mayUseC[s.dir()] && !strings.HasPrefix(s.dir(), "pyext/") && s.path != abiHeader {
			bad = append(bad, s.path+": C is for the edges")
		}
		if s.file == nil {
			continue
		}
		if !slices.Contains(packages, s.dir()) {
			packages = append(packages, s.dir())
		}
		commented[s.dir()] = commented[s.dir()] || s.file.Doc.Text() != ""
		bad = append(bad, checkImports(s)...)
		bad = append(bad, checkUnsafe(s)...)
		bad = append(bad, checkNames(s)...)
		bad = append(bad, checkFunctions(s)...)
		bad = append(bad, checkReserved(s)...)
	}
	for _, p := range packages {
		if _, ok := mayImport[p]; !ok {
			bad = append(bad, p+": not in mayImport; add it there and to ARCHITECTURE.md")
		}
		if !commented[p] {
			bad = append(bad, p+": no package comment")
		}
	}
	return bad
}

// Written in pieces, so that this file does not match.
var machinePath = regexp.MustCompile(`(^|[^\w./])/(wo` + `rk|ro` + `ot|fa` + `rm|ho` + `me/\w)(/|\b)|/tmp/ba` + `sh_jobs|` +
	`proxy\.go` + `lang|pypi\.org/` + `simple|files\.python` + `hosted|registry\.npm` + `js`)

// suspects are in everything that machinePath matches. Looking for them first
// is a hundred times quicker on megabytes of test data.
var suspects = [][]byte{
	[]byte("/wo" + "rk"), []byte("/ro" + "ot"), []byte("/fa" + "rm"), []byte("/ho" + "me/"), []byte("/tmp/ba" + "sh"),
	[]byte("proxy.go" + "lang"), []byte("pypi.org/" + "simple"), []byte("files.python" + "hosted"), []byte("registry.npm" + "js"),
}

// checkPaths finds what is true on one machine only.
func checkPaths(s source) []string {
	suspect := slices.ContainsFunc(suspects, func(p []byte) bool { return bytes.Contains(s.text, p) })
	if !suspect || path.Ext(s.path) == ".sum" {
		return nil
	}
	if m := machinePath.FindIndex(s.text); m != nil {
		line := 1 + bytes.Count(s.text[:m[0]], []byte("\n"))
		if s.text[m[0]] == '\n' {
			line++
		}
		return []string{fmt.Sprintf("%s:%d: path of one machine, or a registry's host", s.path, line)}
	}
	return nil
}

// licensed are the kinds of files that begin with the two SPDX lines.
var licensed = []string{".go", ".c", ".h", ".S", ".py", ".pyi", ".sh", ".toml", ".yml"}

// checkHead checks the licence, and that generated files and no others are
// marked and named as such.
func checkHead(s source) []string {
	var bad []string
	generated := s.isGenerated()
	if s.isZ() && !generated {
		bad = append(bad, s.path+": named like a generated file, but without the line that marks one")
	}
	if generated && !s.isZ() && !s.isWrapper() {
		bad = append(bad, s.path+": generated, so its name must begin with z")
	}
	if generated || !slices.Contains(licensed, s.ext()) && path.Base(s.path) != "Makefile" {
		return bad
	}
	head, _, _ := bytes.Cut(bytes.TrimPrefix(s.text, []byte("#!")), []byte("\n\n"))
	if !bytes.Contains(head, []byte("SPDX-FileCopyrightText: The cudago authors\n")) ||
		!bytes.Contains(head, []byte("SPDX-License-Identifier: Apache-2.0")) {
		bad = append(bad, s.path+": does not begin with the two SPDX lines")
	}
	return bad
}

// counted are the kinds of files that have a cap on their length.
var counted = []string{".go", ".c", ".h", ".S", ".py", ".sh"}

// cFunction matches a function definition that begins and ends at the margin,
// as clang-format leaves it.
var cFunction = regexp.MustCompile(`(?m)^[a-zA-Z][^\n;]*\)\s*\{\n(?:[^}\n][^\n]*\n|\n)*\}`)

// checkLength checks the length of files, and of functions in C.
func checkLength(s source) []string {
	if !slices.Contains(counted, s.ext()) || s.isGenerated() || dataTables[s.path] {
		return nil
	}
	var bad []string
	if n := bytes.Count(s.text, []byte("\n")); n > maxFileLines {
		bad = append(bad, fmt.Sprintf("%s: %d lines, at most %d", s.path, n, maxFileLines))
	}
	if !s.isC() {
		return bad
	}
	for _, m := range cFunction.FindAllIndex(s.text, -1) {
		if n := 1 + bytes.Count(s.text[m[0]:m[1]], []byte("\n")); n > maxFunctionLines {
			line := 1 + bytes.Count(s.text[:m[0]], []byte("\n"))
			bad = append(bad, fmt.Sprintf("%s:%d: function of %d lines, at most %d", s.path, line, n, maxFunctionLines))
		}
	}
	return bad
}

// checkImports checks the arrows, and who uses C.
func checkImports(s source) []string {
	var bad []string
	for _, spec := range s.file.Imports {
		name := strings.Trim(spec.Path.Value, `"`)
		if name == "C" && !mayUseC[s.dir()] {
			bad = append(bad, s.path+`: import "C" is for the edges`)
		}
		ours, ok := strings.CutPrefix(name, module+"/")
		if !ok || s.isTest() || slices.Contains(mayAlsoImport[s.path], ours) {
			continue
		}
		if allowed, listed := mayImport[s.dir()]; listed && !slices.Contains(allowed, ours) {
			bad = append(bad, s.path+": may not import "+ours)
		}
	}
	return bad
}

// harmless are the parts of package unsafe that are constants.
var harmless = []string{"Sizeof", "Alignof", "Offsetof"}

// checkUnsafe finds what package unsafe is for, outside of the edges and of
// the files named for it. Naming the type unsafe.Pointer is not it: the seam
// does so in its signatures.
func checkUnsafe(s source) []string {
	base := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.path), ".go"), "_test")
	if mayUseC[s.dir()] || strings.HasSuffix(base, "_unsafe") {
		return nil
	}
	var bad []string
	eachCall(s, func(line int, from, name string) {
		if from != "unsafe" || slices.Contains(harmless, name) {
			return
		}
		what := "unsafe." + name
		if name == "Pointer" {
			what += "()"
		}
		bad = append(bad, fmt.Sprintf("%s:%d: %s: the name of a file that does this ends in _unsafe.go", s.path, line, what))
	})
	return bad
}

// eachCall visits the calls of functions that have a package's name, or a
// variable's, before theirs.
func eachCall(s source, visit func(line int, from, name string)) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fun := call.Fun
		if paren, ok := fun.(*ast.ParenExpr); ok {
			fun = paren.X
		}
		selector, ok := fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if from, ok := selector.X.(*ast.Ident); ok {
			visit(s.fset.Position(call.Pos()).Line, from.Name, selector.Sel.Name)
		}
		return true
	})
}

// reserved are functions that one package calls for all.
var reserved = map[string]string{
	"debug.SetPanicOnFault": "internal/memfault", // where other libraries' handlers come first, a fault would end the process
}

// checkReserved finds who calls them instead of that package.
func checkReserved(s source) []string {
	var bad []string
	eachCall(s, func(line int, from, name string) {
		if by, ok := reserved[from+"."+name]; ok && s.dir() != by {
			bad = append(bad, fmt.Sprintf("%s:%d: %s.%s: %s does this", s.path, line, from, name, by))
		}
	})
	return bad
}

// onText are the packages that work on the names of files as text, and divided what
// they have for lists of names.
var (
	onText  = []string{"path", "path/filepath"}
	divided = []string{"SplitList", "ListSeparator"}
)

// checkNames finds what makes of the name of a file that of another one.
func checkNames(s source) []string {
	if s.isTest() || mayWorkOnNames[s.dir()] {
		return nil
	}
	var bad []string
	for _, spec := range s.file.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		if !slices.Contains(onText, imported) {
			continue
		}
		local := path.Base(imported)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." {
			bad = append(bad, fmt.Sprintf("%s:%d: %s under this name hides what it does to the names of files",
				s.path, s.fset.Position(spec.Pos()).Line, imported))
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			used, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if from, ok := used.X.(*ast.Ident); ok && from.Name == local && !slices.Contains(divided, used.Sel.Name) {
				bad = append(bad, fmt.Sprintf("%s:%d: %s.%s works on text, where the system follows links: use internal/pathname",
					s.path, s.fset.Position(used.Pos()).Line, path.Base(imported), used.Sel.Name))
			}
			return true
		})
	}
	return bad
}

// checkFunctions checks the length of Go functions.
func checkFunctions(s source) []string {
	if s.isGenerated() {
		return nil
	}
	var bad []string
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		first, last := s.fset.Position(f.Pos()).Line, s.fset.Position(f.End()).Line
		if n := last - first + 1; n > maxFunctionLines {
			bad = append(bad, fmt.Sprintf("%s:%d: %s: %d lines, at most %d", s.path, first, functionName(f), n, maxFunctionLines))
		}
	}
	return bad
}

// functionName returns "Receiver.name", or the name.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}
