// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package dl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func take(_ Library, _, file string) (*string, string) { return &file, "" }

func notFound(t *testing.T, w Wanted, s Search) *NotFoundError {
	t.Helper()
	_, err := Find(w, s, take)
	var missing *NotFoundError
	require.ErrorAs(t, err, &missing)
	return missing
}

func TestFindTakesTheFirst(t *testing.T) {
	w := Wanted{Names: []string{"libcudago_no_such.so", "libc.so.6"}}
	found, err := Find(w, Search{Paths: []string{"/nowhere"}}, take)
	require.NoError(t, err)
	require.Equal(t, "libc.so.6", *found) // by the loader's own search
}

func TestFindSaysWhereItLooked(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "libcudago_b.so"), []byte("not a library"), 0o600))
	t.Setenv("A_PATH", "/nowhere")
	t.Setenv("CUDA_HOME", "/toolkit")
	w := Wanted{What: "B", Names: []string{"libcudago_a.so", "libcudago_b.so"}, Variable: "A_PATH", Folders: []string{"lib64"}, Extra: "b"}
	s := Search{Paths: []string{dir}}
	missing := notFound(t, w, s)
	require.Equal(t, Attempt{"/nowhere/libcudago_a.so", "no such file"}, missing.Tried[0])
	require.Equal(t, filepath.Join(dir, "libcudago_b.so"), missing.Tried[3].Place)
	require.Equal(t, "libcudago_a.so", missing.Tried[4].Place)
	require.ErrorContains(t, missing, "B was not found; `pip install cudago[b]` brings it along; looked in\n  /nowhere/libcudago_a.so: no such file\n")
	require.ErrorContains(t, missing, "/toolkit/lib64/libcudago_b.so: no such file")

	w.ByFolder = true
	missing = notFound(t, w, s)
	require.Equal(t, Attempt{"/nowhere", "no such directory"}, missing.Tried[0])
	require.Equal(t, filepath.Join(dir, "libcudago_b.so"), missing.Tried[1].Place)
	require.Contains(t, notFound(t, w, Search{Paths: []string{t.TempDir()}}).Tried[1].Why, "has none of libcudago_a.so, libcudago_b.so")

	_, err := Find(Wanted{Names: []string{"libc.so.6"}}, Search{}, func(Library, string, string) (*string, string) { return nil, "lacks it" })
	require.ErrorContains(t, err, "\n  libc.so.6: lacks it")
}

// The loader has a library of this name too: what is in the folder counts.
func TestFindInTheCurrentFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "libc.so.6"), []byte("not a library"), 0o600))
	t.Chdir(dir)
	here, err := os.Getwd()
	require.NoError(t, err)
	for _, named := range []string{".", "./", "../" + filepath.Base(dir)} {
		_, err := Find(Wanted{Names: []string{"libc.so.6"}}, Search{Paths: []string{named}},
			func(Library, string, string) (*string, string) { return nil, "" })
		require.ErrorContains(t, err, here+"/"+strings.TrimSuffix(named, "/")+"/libc.so.6: ")
	}
}

func TestSymbols(t *testing.T) {
	l, why := Open("libc.so.6")
	require.Empty(t, why)
	at, why := l.Symbols([]string{"malloc", "free"})
	require.Empty(t, why)
	require.Equal(t, []uintptr{l.Symbol("malloc"), l.Symbol("free")}, at)
	_, why = l.Symbols([]string{"malloc", "cudago_no_such_symbol"})
	require.Equal(t, "lacks cudago_no_such_symbol", why)
}
