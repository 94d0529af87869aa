// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// papers are the texts at the root. One that names files which are gone
// misleads more than it helps.
var papers = []string{"README.md", "ARCHITECTURE.md", "RATIONALE.md", "CONTRIBUTING.md"}

// notOurs are names in papers of files of others, such as the reader, and of the
// ends of names.
var notOurs = map[string]bool{"Python.h": true, "pyconfig.h": true, "_unsafe.go": true, "script.py": true}

var (
	// code matches what stands in backquotes, and a line that is indented as
	// code; link matches where a link leads to.
	code = regexp.MustCompile("`([^`\n]+)`|(?m:^    (.+)$)")
	link = regexp.MustCompile(`\]\(([\w./-]+)(?:#[\w-]+)?\)`)
	// withFolder and alone match a whole word that is a path, or a file's name.
	withFolder = regexp.MustCompile(`^[\w.-]*\w[\w.-]*(/[\w.-]*\w[\w.-]*)+/?$`)
	alone      = regexp.MustCompile(`^[\w-]+\.(go|c|h|S|py|pyi|sh|txt|md|mod|toml|yml|rst|ptx|ipynb|map)$`)
	// targets match what make is asked for, and what a Makefile has.
	asked  = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
	target = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

func TestPapersNameWhatIsThere(t *testing.T) {
	require.Empty(t, strays(t, os.DirFS(root)))
}

func TestStraysAreFound(t *testing.T) {
	tree := fstest.MapFS{
		"graph/exec.go": {}, "Makefile": {Data: []byte("test-go: tools\n\tgo test\n")},
		"README.md": {Data: []byte("See `graph/exec.go`, `exec.go`, `go test ./graph`, `make test-go X=1` and [it](graph/exec.go#a).\n")},
	}
	for _, name := range papers[1:] {
		tree[name] = &fstest.MapFile{}
	}
	require.Empty(t, strays(t, tree))
	for text, want := range map[string]string{
		"`graph/gone.go`":                    "graph/gone.go",
		"`gone.go`":                          "gone.go",
		"`python graph/gone.py FILE`":        "graph/gone.py",
		"`graph/gone/`":                      "graph/gone/",
		"[it](gone.md)":                      "gone.md",
		"[it](graph/gone.go#here)":           "graph/gone.go",
		"`make gone`":                        "make gone",
		"\n    pytest graph/gone.py::test_a": "graph/gone.py",
		"\n    make gone # a comment":        "make gone",
	} {
		tree["CONTRIBUTING.md"] = &fstest.MapFile{Data: []byte("See " + text + "\n")}
		require.Equal(t, []string{"CONTRIBUTING.md: there is no " + want}, strays(t, tree), text)
	}
}

// strays returns one line for each thing that a paper names and the tree lacks.
func strays(t *testing.T, tree fs.FS) []string {
	t.Helper()
	made, err := fs.ReadFile(tree, "Makefile")
	require.NoError(t, err)
	there := fileNames(t, tree)
	for _, m := range target.FindAllStringSubmatch(string(made), -1) {
		there["make "+m[1]] = true
	}
	var gone []string
	for _, paper := range papers {
		text, err := fs.ReadFile(tree, paper)
		require.NoError(t, err)
		for _, name := range things(string(text)) {
			if _, err := fs.Stat(tree, path.Clean(name)); err != nil && !there[name] {
				gone = append(gone, paper+": there is no "+name)
			}
		}
	}
	return gone
}

// fileNames returns the names of the tree's files, without their folders.
func fileNames(t *testing.T, tree fs.FS) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	require.NoError(t, fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && passedOver(name) {
			return fs.SkipDir
		}
		names[path.Base(name)] = true
		return err
	}))
	return names
}

// things returns the files, folders and targets that a paper names, but for
// those that are built.
func things(text string) []string {
	var found []string
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		for _, word := range strings.Fields(m[1] + m[2]) {
			word, _, _ = strings.Cut(strings.Trim(word, `"';,()`), "::")
			isBuilt := strings.HasSuffix(word, ".so") || strings.HasPrefix(word, "build/") || strings.HasPrefix(word, "docs/_build/") ||
				strings.HasPrefix(word, ".venv/")
			if (withFolder.MatchString(word) || alone.MatchString(word)) && !isBuilt && !notOurs[word] {
				found = append(found, word)
			}
		}
		for _, m := range asked.FindAllStringSubmatch(m[1]+m[2], -1) {
			found = append(found, "make "+m[1])
		}
	}
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}
