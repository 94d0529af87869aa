// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// write makes files, and their folders.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

// Each name leads to a longer one.
func TestFilesThatIncludeEachOther(t *testing.T) {
	dir := t.TempDir()
	write(t, map[string]string{
		dir + "/a/x.h": "#pragma once\n#include \"../b/y.h\"\n",
		dir + "/b/y.h": "#pragma once\n#include \"../a/x.h\"\n#include \"z.h\"\n",
		dir + "/b/z.h": "",
	})
	s := Source{Texts: []string{"#include <x.h>"}, Dirs: []string{dir + "/a"}}
	files, known := s.Read()
	require.True(t, known)
	require.Contains(t, files.Found, dir+"/a/../b/z.h")
	require.Len(t, files.Found, 5)
	require.True(t, files.Unchanged())
	write(t, map[string]string{dir + "/b/z.h": "int x;"})
	require.False(t, files.Unchanged())
}

// What a file includes is looked for by one of its names. The other one may come to
// lead to the same text, which includes something else there.
func TestLinkThatLeadsElsewhere(t *testing.T) {
	dir := t.TempDir()
	const text = "#include \"y.h\"\n"
	write(t, map[string]string{
		dir + "/one/x.h": text, dir + "/one/y.h": "#define V 1",
		dir + "/two/x.h": text, dir + "/two/y.h": "#define V 2",
	})
	link := dir + "/link"
	require.NoError(t, os.Symlink("one", link))
	s := Source{Texts: []string{"#include <one/x.h>\n#include <link/x.h>"}, Dirs: []string{dir}}
	files, known := s.Read()
	require.True(t, known)
	require.Equal(t, map[string]string{link: dir + "/one"}, files.Same)
	require.True(t, files.Unchanged())
	require.NoError(t, os.Remove(link))
	require.False(t, files.Unchanged())
	require.NoError(t, os.Symlink("two", link))
	require.False(t, files.Unchanged())
}
