// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/growth"
)

// sources are texts of about n bytes.
var sources = map[string]func(n int) string{
	"includes":          func(n int) string { return again(n, "#include <a.h>\n") },
	"many includes":     func(n int) string { return each(n/20, "#include <a%d.h>\n") },
	"macros":            func(n int) string { return again(n, "#include THRUST_MR_STD_MR_HEADER\n") },
	"systems":           func(n int) string { return each(n/50, "#include __THRUST_HOST_SYSTEM_A%d_HEADER\n") },
	"asked for":         func(n int) string { return again(n, "#if __has_include(<a.h>)\n") },
	"asked in a line":   func(n int) string { return "#if 1" + again(n, "||__has_include(<a.h>)") },
	"macros in a line":  func(n int) string { return "#if 1" + again(n, "||__has_include(THRUST_MR_STD_MR_HEADER") },
	"names for that":    func(n int) string { return again(n, "#define HAS_INCLUDE(x) 0\n") },
	"a definition":      func(n int) string { return "#define HAS_INCLUDE(" + again(n, " ") },
	"definitions":       func(n int) string { return again(n, "#define A B\n") },
	"a long name":       func(n int) string { return "#include <" + again(n, "a") + ">" },
	"a long macro":      func(n int) string { return "#include " + again(n, "a") },
	"no end":            func(n int) string { return again(n, "#include <a\n") },
	"no comment's end":  func(n int) string { return again(n, "/*") },
	"comments":          func(n int) string { return again(n, "/**/") },
	"comments before":   func(n int) string { return again(n, "/**/ #include <a.h>\n") },
	"quotes":            func(n int) string { return again(n, "'") },
	"backslashes":       func(n int) string { return again(n, "\\") },
	"spliced lines":     func(n int) string { return again(n, "a\\\n") },
	"almost spliced":    func(n int) string { return again(n, "\\ ") },
	"spaces behind one": func(n int) string { return again(n, "\\"+strings.Repeat(" ", 100)+"x") },
	"a raw text":        func(n int) string { return "R\"(" + again(n, ")") + ")\"" },
	"raw texts":         func(n int) string { return again(n, "R\"()\"") },
	"raw marks":         func(n int) string { return "R\"" + again(n, "a") + "(" + again(n, ")a") },
	"digits":            func(n int) string { return again(n, "1'") },
	"numbers signs":     func(n int) string { return again(n, "#") },
	"lines":             func(n int) string { return again(n, "#\n") },
}

func again(n int, s string) string { return strings.Repeat(s, n/len(s)+1) }

func each(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestIncludesAreFoundInTheTimeOfReading(t *testing.T) {
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			growth.RequireLinear(t, 100_000, source, func(text string) { includes(text) })
		})
	}
}

func TestHeadersThatIncludeEachOther(t *testing.T) {
	growth.RequireLinear(t, 50, func(n int) *Source {
		folder := t.TempDir()
		for i := range n {
			text := fmt.Sprintf("#include \"%d.h\"\n#include \"../%s/%d.h\"\n", (i+1)%n, filepath.Base(folder), (i+2)%n)
			require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprint(i, ".h")), []byte(text), 0o600))
		}
		return &Source{Texts: []string{"#include <0.h>"}, Dirs: []string{folder}}
	}, func(s *Source) {
		_, isKnown := s.Read()
		require.True(t, isKnown)
	})
}

func TestEntriesAreReadInTheTimeOfTheirSize(t *testing.T) {
	entries := map[string]func(n int) *Entry{
		"data": func(n int) *Entry {
			return &Entry{Data: make([]byte, 100*n), PTX: again(100*n, "a"), Log: again(n, "b")}
		},
		"names": func(n int) *Entry { return &Entry{Names: numbered(n)} },
		"files": func(n int) *Entry {
			e := &Entry{Files: Files{Found: map[string]File{}, Same: numbered(n)}}
			for path := range numbered(n) {
				e.Files.Found[path] = File{}
				e.Files.Missing = append(e.Files.Missing, path)
			}
			return e
		},
	}
	for name, entry := range entries {
		t.Run(name, func(t *testing.T) {
			growth.RequireLinear(t, 2000, func(n int) []byte {
				data, err := encode(Key{}, entry(n))
				require.NoError(t, err)
				return data
			}, func(data []byte) {
				e, err := decode(Key{}, data)
				require.NoError(t, err)
				e.size()
			})
			growth.RequireLinear(t, 2000, entry, func(e *Entry) { e.Files.Unchanged() })
		})
	}
}

func numbered(n int) map[string]string {
	names := map[string]string{}
	for i := range n {
		names[fmt.Sprint("/nowhere/", i)] = "/nowhere"
	}
	return names
}

func TestAFolderOfManyEntries(t *testing.T) {
	growth.RequireLinear(t, 300, func(n int) *folder {
		f := &folder{t.TempDir(), 1 << 30}
		_, err := f.write(Key{}, &Entry{})
		require.NoError(t, err)
		for i := range n {
			file := filepath.Join(f.path, name, NewKey([]string{fmt.Sprint(i)}).String())
			require.NoError(t, os.WriteFile(file, nil, 0o600))
		}
		return f
	}, func(f *folder) {
		entries, _ := f.count()
		require.NotZero(t, entries)
		_, err := f.write(NewKey([]string{"0"}), &Entry{})
		require.NoError(t, err)
	})
}
