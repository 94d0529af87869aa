// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvvm

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/dl"
)

// library is the libnvvm of this machine. Those of Python's packages are tested in
// tests_py/kernel/test_nvvm.py.
func library(t *testing.T) *Library {
	t.Helper()
	l, err := Open(Options{})
	if err != nil {
		require.Empty(t, os.Getenv(PathVariable), "it names no usable libnvvm: %v", err)
		t.Skipf("set %s to run this: %v", PathVariable, err)
	}
	return l
}

const kernel = empty + `
define ptx_kernel void @store(i32* %x) {
  store i32 42, i32* %x
  ret void
}
`

func program(text string, options ...string) Input {
	return Input{Modules: []Module{{"k.ll", []byte(text)}}, Options: options}
}

func TestKnows(t *testing.T) {
	l := library(t)
	require.True(t, l.Knows("compute_80"))
	require.False(t, l.Knows("compute_1"))
}

func TestCompile(t *testing.T) {
	l := library(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			out, r := l.Compile(program(kernel, "-arch=compute_80"))
			if r != NVVM_SUCCESS {
				t.Errorf("%v: %s", r, out.Log)
			}
			if got := string(out.Code); len(got) < 100 || got[len(got)-1] == 0 {
				t.Errorf("%q", got)
			}
		})
	}
	wg.Wait()
	out, r := l.Compile(program(kernel, "-gen-lto"))
	require.Equal(t, NVVM_SUCCESS, r)
	require.NotEmpty(t, out.Code)
}

func TestFailures(t *testing.T) {
	l := library(t)
	out, r := l.Compile(program("nonsense"))
	require.NotEqual(t, NVVM_SUCCESS, r)
	require.Contains(t, out.Log, "k.ll")
	out, r = l.Compile(program(kernel, "-nonsense"))
	require.Equal(t, NVVM_ERROR_INVALID_OPTION, r)
	require.Contains(t, out.Log, "-nonsense")
	out, r = l.Compile(program(""))
	require.Equal(t, NVVM_ERROR_INVALID_INPUT, r)
	require.Contains(t, out.Log, "k.ll: is not accepted: NVVM_ERROR_INVALID_INPUT")
}

func TestOpenNamesThePlaces(t *testing.T) {
	empty, broken := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(broken, "libnvvm.so"), []byte("not a library"), 0o600))
	t.Setenv(PathVariable, filepath.Join(empty, "nowhere"))
	t.Setenv("CUDA_HOME", empty)
	_, err := Open(Options{Paths: []string{broken}})
	if err == nil {
		t.Skip("the system has a libnvvm, so that nothing is missing")
	}
	var missing *dl.NotFoundError
	require.ErrorAs(t, err, &missing)
	require.Contains(t, missing.Tried, dl.Attempt{Place: filepath.Join(empty, "nowhere", "libnvvm.so.4"), Why: "no such file"})
	require.Contains(t, missing.Tried, dl.Attempt{Place: filepath.Join(empty, "nvvm", "lib64", "libnvvm.so"), Why: "no such file"})
	require.ErrorContains(t, err, filepath.Join(broken, "libnvvm.so")+": ")
	require.ErrorContains(t, err, "pip install cudago[nvvm]")
}

func TestLibdeviceIsFoundBesideTheLibrary(t *testing.T) {
	for _, place := range libdevicePlaces {
		root := t.TempDir()
		library := filepath.Join(root, "a", "lib", "libnvvm.so.4")
		require.NoError(t, os.MkdirAll(filepath.Dir(library), 0o755))
		folder := filepath.Dir(library) + "/" + place
		require.NoError(t, os.MkdirAll(folder, 0o755))
		file := folder + "/libdevice.10.bc"
		require.NoError(t, os.WriteFile(file, []byte("bitcode"), 0o600))
		require.Equal(t, file, libdeviceOf(library))
		data, err := (&Library{libdevice: file}).Libdevice()
		require.NoError(t, err)
		require.Equal(t, "bitcode", string(data))
		_, err = (&Library{libdevice: file + "x"}).Libdevice()
		require.ErrorContains(t, err, "no such file")
	}
	_, err := (&Library{path: "/x/libnvvm.so"}).Libdevice()
	require.ErrorContains(t, err, "was not found: there is none beside libnvvm")
}

func TestResultNames(t *testing.T) {
	require.Equal(t, "NVVM_ERROR_COMPILATION", NVVM_ERROR_COMPILATION.String())
	require.Equal(t, "NVVM_ERROR_CANCELLED", Result(10).String())
	require.Equal(t, "nvvmResult 99", Result(99).String())
}
