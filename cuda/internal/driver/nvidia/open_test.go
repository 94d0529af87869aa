// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/drivertest"
)

func TestOpenNamesEveryLibraryTried(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "libcuda.so.1")
	require.NoError(t, os.WriteFile(broken, []byte("not a library"), 0o600))

	_, err := Open(Options{Libraries: []string{"libcuda-of-no-machine.so", broken}})
	var missing *NotFoundError
	require.ErrorAs(t, err, &missing)
	require.Len(t, missing.Tried, 2)
	require.Equal(t, "libcuda-of-no-machine.so", missing.Tried[0].Name)
	require.Contains(t, missing.Tried[0].Why, "No such file")
	require.ErrorContains(t, err, broken+": "+missing.Tried[1].Why)
}

func TestCandidates(t *testing.T) {
	t.Setenv(LibraryVariable, "")
	require.Equal(t, []string{"libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"}, candidates(Options{}))
	t.Setenv(LibraryVariable, "/opt/libcuda.so")
	require.Equal(t, []string{"/opt/libcuda.so"}, candidates(Options{}))
	require.Equal(t, []string{"mine.so"}, candidates(Options{Libraries: []string{"mine.so"}}))
}

func TestOpenByEnvironment(t *testing.T) {
	s := newStandin(t, standinSource)
	t.Setenv(LibraryVariable, s.library)
	d, err := Open(Options{})
	require.NoError(t, err)
	require.Equal(t, "nvidia", d.Name())
	require.NoError(t, d.Close())
}

func TestOpenAsksForTheStatedVersions(t *testing.T) {
	s := newStandin(t, standinSource)
	_, err := Open(Options{Libraries: []string{s.library}})
	require.NoError(t, err)
	calls := s.calls(t)
	require.Len(t, calls, entryCount)
	for i, e := range entries {
		require.Equal(t, fmt.Sprintf("lookup %s %d 0", e.name, e.version), calls[i])
	}
	require.Contains(t, calls, "lookup cuStreamGetCaptureInfo 12030 0")
	require.Contains(t, calls, "lookup cuEventElapsedTime 2000 0")
}

func TestEntriesFitTheOldestDriver(t *testing.T) {
	for _, e := range entries {
		require.NotEmpty(t, e.name)
		if e.required {
			require.LessOrEqual(t, e.version, oldestVersion, e.name)
		}
	}
}

func TestOpenRefusesWhatItCannotUse(t *testing.T) {
	tests := []struct {
		name, version, missing string
		want                   string
	}{
		{
			name: "too old", version: "12030",
			want: "supports CUDA up to 12.3; cudago needs a driver for CUDA 12.4 or newer",
		},
		{
			name: "required calls missing", version: "13000", missing: "cuGraphLaunch,cuInit",
			want: "(CUDA 13.0) lacks cuInit, cuGraphLaunch",
		},
		{
			name: "too old and incomplete", version: "9020", missing: "cuGraphLaunch",
			want: "supports CUDA up to 9.2",
		},
		{
			name: "no version", missing: "cuDriverGetVersion",
			want: "does not say which CUDA version it supports",
		},
	}
	s := newStandin(t, standinSource)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("STANDIN_VERSION", tt.version)
			t.Setenv("STANDIN_MISSING", tt.missing)
			d, err := Open(Options{Libraries: []string{s.library}})
			var unsuitable *UnsuitableError
			require.ErrorAs(t, err, &unsuitable)
			require.ErrorContains(t, err, s.library+" "+tt.want)
			require.Nil(t, d)
		})
	}
}

func TestOptionalCallMissing(t *testing.T) {
	s := newStandin(t, standinSource)
	t.Setenv("STANDIN_MISSING", "cuFuncGetParamInfo,cuModuleGetFunctionCount")
	d, err := Open(Options{Libraries: []string{s.library}})
	require.NoError(t, err)

	_, _, r := d.CuFuncGetParamInfo(13, 0)
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, r)
	names, r := d.CuModuleFunctionNames(12)
	require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, r)
	require.Nil(t, names)
	require.Zero(t, d.EntryPoint("cuFuncGetParamInfo"))
}

func TestOpenByExportedNames(t *testing.T) {
	source := standinSource
	for _, e := range entries {
		if exported := e.name + e.suffix; !strings.Contains(source+standinGraphs+standinCalls, "EXPORT CUresult "+exported+"(") {
			source += "EXPORT CUresult " + exported + "(void) { return 999; }\n"
		}
	}
	s := newStandin(t, source, "-DWITHOUT_GET_PROC_ADDRESS")
	d, err := Open(Options{Libraries: []string{s.library}})
	require.NoError(t, err)
	require.Zero(t, d.CuStreamDestroy(16))
	require.Equal(t, []string{"cuStreamDestroy 16"}, s.calls(t))
}

func TestEntryPoint(t *testing.T) {
	t.Setenv("STANDIN_VERSION", "13000")
	_, d := openStandin(t)
	for _, e := range entries {
		require.NotZero(t, d.EntryPoint(e.name), e.name)
	}
	require.NotEqual(t, d.EntryPoint("cuMemcpyAsync"), d.EntryPoint("cuLaunchKernelEx"))
	require.Zero(t, d.EntryPoint("cuNoSuchCall"))
}

// TestEveryMethodReachesItsCall gives the driver one call at a time, which
// returns 999, and requires the method of that name to come to it.
func TestEveryMethodReachesItsCall(t *testing.T) {
	s := newStandin(t, standinSource)
	lib, err := openLibrary([]string{s.library})
	require.NoError(t, err)
	all, missing := resolve(lib)
	require.Empty(t, missing)
	unimplemented := all.fn[cuDeviceGetPCIBusId]

	// CuModuleFunctionNames is made of three calls; cuLaunchKernel is there
	// for EntryPoint only.
	apart := []string{"cuModuleGetFunctionCount", "cuModuleEnumerateFunctions", "cuFuncGetName", "cuLaunchKernel"}
	for i, e := range entries {
		if slices.Contains(apart, e.name) {
			continue
		}
		only := new(binding)
		only.fn[i] = unimplemented
		require.Equal(t, driver.CUDA_ERROR_UNKNOWN, call(t, only, "C"+e.name[1:]), e.name)
		require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, call(t, new(binding), "C"+e.name[1:]), e.name)
	}
}

// call calls a method with zeros.
func call(t *testing.T, d *binding, method string) driver.CUresult {
	t.Helper()
	m := reflect.ValueOf(d).MethodByName(method)
	require.True(t, m.IsValid(), "no method %s", method)
	return drivertest.CallWithZeros(m)
}
