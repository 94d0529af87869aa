// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// The source travels in the test binary, so that it needs a C compiler on the
// machine where it runs and no checkout.
//
//go:embed testdata/libcuda.c
var standinSource string

// standinGraphs are its graph calls, which it includes.
//
//go:embed testdata/libcuda_graph.h
var standinGraphs string

// standinCalls are the generated half of it, which it includes.
//
//go:embed testdata/zlibcuda.h
var standinCalls string

// standin is a driver library that records what it is called with.
type standin struct {
	library string
	log     string
}

// newStandin compiles the stand-in and points its log at a file of t.
func newStandin(t *testing.T, source string, flags ...string) standin {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	words := strings.Fields(cc)
	if _, err := exec.LookPath(words[0]); err != nil {
		t.Skipf("no C compiler for the stand-in libcuda: %v", err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "libcuda.c")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "libcuda_graph.h"), []byte(standinGraphs), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "zlibcuda.h"), []byte(standinCalls), 0o600))
	s := standin{filepath.Join(dir, "libcuda-standin.so"), filepath.Join(dir, "log")}
	args := append(words[1:], "-shared", "-fPIC", "-o", s.library, file)
	out, err := exec.Command(words[0], append(args, flags...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	t.Setenv("STANDIN_LOG", s.log)
	return s
}

// openStandin opens a fresh stand-in as a driver.
func openStandin(t *testing.T) (standin, driver.API) {
	t.Helper()
	s := newStandin(t, standinSource)
	d, err := Open(Options{Libraries: []string{s.library}})
	require.NoError(t, err)
	s.clear(t)
	return s, d
}

func (s standin) clear(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile(s.log, nil, 0o600))
}

// calls returns the lines recorded since the last call of it.
func (s standin) calls(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(s.log)
	require.NoError(t, err)
	s.clear(t)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
