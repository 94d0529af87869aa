// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvrtc

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/dl"
)

// wheels prints the library directories of NVIDIA's wheels, one per line.
const wheels = `
import glob, os, sysconfig
for root in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
    print("\n".join(glob.glob(os.path.join(root, "nvidia", "*", "lib"))))
`

// library is the NVRTC of this machine: by CUDAGO_NVRTC_PATH, else from the
// wheels of python3, else the system's.
func library(t *testing.T) *Library {
	t.Helper()
	var o Options
	if os.Getenv(PathVariable) == "" {
		if out, err := exec.Command("python3", "-c", wheels).Output(); err == nil {
			o.Paths = strings.Fields(string(out))
		}
	}
	l, err := Open(o)
	if err != nil {
		require.Empty(t, os.Getenv(PathVariable), "it names no usable NVRTC: %v", err)
		t.Skipf("set %s to run this: %v", PathVariable, err)
	}
	return l
}

func TestLibraryTellsVersionAndArchs(t *testing.T) {
	l := library(t)
	major, _ := l.Version()
	require.GreaterOrEqual(t, major, 12)
	archs := l.SupportedArchs()
	require.Contains(t, archs, 75)
	require.True(t, slices.IsSorted(archs), "%v", archs)
	require.FileExists(t, l.Path())
}

func TestCompileToPTX(t *testing.T) {
	out, r := library(t).Compile(Input{
		Source:  `extern "C" __global__ void k(float a, float *x) { x[threadIdx.x] *= a; }`,
		Name:    "k.cu",
		Options: []string{"--gpu-architecture=compute_75"},
	})
	require.Equal(t, NVRTC_SUCCESS, r, out.Log)
	require.Contains(t, string(out.PTX), ".visible .entry k(")
	require.Contains(t, string(out.PTX), ".target sm_75")
	require.NotContains(t, string(out.PTX), "\x00")
	require.Empty(t, out.CUBIN)
	require.Empty(t, out.LTOIR)
	require.Nil(t, out.LoweredNames)
}

func TestCompileToCubinKeepsPTX(t *testing.T) {
	out, r := library(t).Compile(Input{
		Source:  `extern "C" __global__ void k(int *x) { *x = 1; }`,
		Options: []string{"-arch=sm_75"},
	})
	require.Equal(t, NVRTC_SUCCESS, r, out.Log)
	require.Equal(t, "\x7fELF", string(out.CUBIN[:4]))
	require.Contains(t, string(out.PTX), ".entry k(")
}

func TestCompileToLTOIR(t *testing.T) {
	out, r := library(t).Compile(Input{
		Source:  `extern "C" __device__ int one() { return 1; }`,
		Options: []string{"-arch=sm_75", "-dlto"},
	})
	require.Equal(t, NVRTC_SUCCESS, r, out.Log)
	require.NotEmpty(t, out.LTOIR)
	require.Empty(t, out.CUBIN)
}

func TestCompileLowersNames(t *testing.T) {
	const scale, global = "scale<float>", "&table"
	out, r := library(t).Compile(Input{
		Source: `__constant__ int table[4];
			template <class T> __global__ void scale(T *x) { x[0] *= table[0]; }`,
		Options:         []string{"-arch=compute_75"},
		NameExpressions: []string{scale, global},
	})
	require.Equal(t, NVRTC_SUCCESS, r, out.Log)
	require.Len(t, out.LoweredNames, 2)
	require.Contains(t, string(out.PTX), ".entry "+out.LoweredNames[scale]+"(")
	require.Equal(t, "table", out.LoweredNames[global])
}

func TestCompileReadsHeadersFromMemory(t *testing.T) {
	out, r := library(t).Compile(Input{
		Source:  "#include \"answer.h\"\n#include \"sub/other.h\"\n" + `extern "C" __global__ void k(int *x) { *x = ANSWER + OTHER; }`,
		Options: []string{"-arch=compute_75"},
		Headers: []Header{{"answer.h", "#define ANSWER 4200"}, {"sub/other.h", "#define OTHER 42"}},
	})
	require.Equal(t, NVRTC_SUCCESS, r, out.Log)
	require.Contains(t, string(out.PTX), "4242")
}

func TestCompileFailures(t *testing.T) {
	tests := []struct {
		name    string
		in      Input
		want    Result
		wantLog string
	}{
		{
			name:    "error in the source",
			in:      Input{Source: "__global__ void k() { nonsense; }", Name: "bad.cu"},
			want:    NVRTC_ERROR_COMPILATION,
			wantLog: `bad.cu(1): error: identifier "nonsense" is undefined`,
		},
		{
			name:    "unknown option",
			in:      Input{Options: []string{"--no-such-option"}},
			want:    NVRTC_ERROR_INVALID_OPTION,
			wantLog: "--no-such-option",
		},
		{
			name:    "name that the source lacks",
			in:      Input{NameExpressions: []string{"missing<int>"}},
			want:    NVRTC_ERROR_COMPILATION,
			wantLog: "missing",
		},
	}
	l := library(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, r := l.Compile(tt.in)
			require.Equal(t, tt.want, r)
			require.Contains(t, out.Log, tt.wantLog)
			require.Empty(t, out.PTX)
		})
	}
}

func TestCompileKeepsWarnings(t *testing.T) {
	out, r := library(t).Compile(Input{Source: "#warning look here\n"})
	require.Equal(t, NVRTC_SUCCESS, r)
	require.Contains(t, out.Log, "look here")
}

func TestCompileConcurrently(t *testing.T) {
	l := library(t)
	names := []string{"alpha", "beta", "gamma"}
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() {
			out, r := l.Compile(Input{Source: `extern "C" __global__ void ` + name + `() {}`})
			if r != NVRTC_SUCCESS || !strings.Contains(string(out.PTX), ".entry "+name) {
				t.Errorf("%s: %v %s", name, r, out.Log)
			}
		})
	}
	wg.Wait()
}

func TestOpenNamesThePlaces(t *testing.T) {
	empty := t.TempDir()
	broken := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(broken, "libnvrtc.so.13"), []byte("not a library"), 0o600))
	t.Setenv(PathVariable, filepath.Join(empty, "nowhere"))
	t.Setenv("CUDA_HOME", empty)

	_, err := Open(Options{Paths: []string{empty, broken}})
	if err == nil {
		t.Skip("the system has an NVRTC, so that nothing is missing")
	}
	var missing *dl.NotFoundError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, dl.Attempt{Place: filepath.Join(empty, "nowhere"), Why: "no such directory"}, missing.Tried[0])
	require.Equal(t, dl.Attempt{Place: empty, Why: "has none of libnvrtc.so.13, libnvrtc.so.12"}, missing.Tried[1])
	require.Equal(t, filepath.Join(broken, "libnvrtc.so.13"), missing.Tried[2].Place)
	require.NotEmpty(t, missing.Tried[2].Why)
	require.ErrorContains(t, err, "pip install cudago[sim]")
	require.ErrorContains(t, err, filepath.Join(empty, "lib64"))
}

func TestResultNames(t *testing.T) {
	require.Equal(t, "NVRTC_ERROR_COMPILATION", NVRTC_ERROR_COMPILATION.String())
	require.Equal(t, "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID", Result(10).String())
	require.Equal(t, "nvrtcResult 99", Result(99).String())
	require.Equal(t, "nvrtcResult -1", Result(-1).String())
}
