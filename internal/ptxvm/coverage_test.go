// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptx"
	"github.com/cudago/cudago/internal/ptxir"
)

// coverage is what the files of testdata hold: names of instructions as
// ptxir.Reference has them, and each with the modifiers that it occurs with.
type coverage struct {
	names map[string]bool
	words map[string]bool
}

// opcodes are the names of the tables by opcode, those with most words first.
func opcodes() map[string][]string {
	names := map[string][]string{}
	for _, s := range ptxir.Reference() {
		for _, r := range s.Rows {
			op, _, _ := strings.Cut(r.Name, ".")
			if !slices.Contains(names[op], r.Name) {
				names[op] = append(names[op], r.Name)
			}
		}
	}
	for _, list := range names {
		slices.SortFunc(list, func(a, b string) int { return strings.Count(b, ".") - strings.Count(a, ".") })
	}
	return names
}

func (c *coverage) add(names map[string][]string, m *ptx.Mnemonic) {
	for _, name := range names[m.Op] {
		words := strings.Split(name, ".")[1:]
		if slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(m.Modifiers, w) }) {
			continue
		}
		c.names[name] = true
		for _, w := range m.Modifiers {
			c.words[name+" "+w] = true
		}
		return
	}
}

func (c *coverage) block(names map[string][]string, b *ptx.Block) {
	for _, s := range b.Statements {
		switch x := s.(type) {
		case *ptx.Instruction:
			c.add(names, x.Mnemonic)
		case *ptx.Block:
			c.block(names, x)
		}
	}
}

// readCoverage parses the files that load and run.
func readCoverage(t *testing.T) *coverage {
	c := &coverage{names: map[string]bool{}, words: map[string]bool{}}
	names := opcodes()
	require.NoError(t, filepath.WalkDir("testdata", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".ptx" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(text), "// load error:") {
			return err
		}
		m, err := ptx.Parse(string(text))
		require.NoError(t, err, path)
		for _, item := range m.Items {
			if f, ok := item.(*ptx.Function); ok && f.Body != nil {
				c.block(names, f.Body)
			}
		}
		return nil
	}))
	return c
}

// TestEveryInstructionHasACase requires a file of testdata for each
// instruction that the documentation says runs, and for each of its modifiers.
// It cannot see whether the file looks at the result. Matrix instructions have
// tests that make their files, one for each shape.
func TestEveryInstructionHasACase(t *testing.T) {
	c := readCoverage(t)
	missing := func(key string, has bool) {
		if !has {
			t.Errorf("no file of testdata runs %s", key)
		}
	}
	for _, s := range ptxir.Reference() {
		if strings.HasPrefix(s.Title, matrixSection) {
			continue
		}
		for _, r := range s.Rows {
			if r.Refused != "" {
				continue
			}
			missing(r.Name, c.names[r.Name])
			for _, m := range r.Modifiers {
				for _, w := range m.Choice {
					missing(r.Name+" "+w, c.words[r.Name+" "+w])
				}
			}
		}
	}
}
