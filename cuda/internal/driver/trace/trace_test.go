// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/fault"
)

type under struct{ driver.API }

func (under) CuMemAlloc(size uint64) (driver.CUdeviceptr, driver.CUresult) {
	return 0x1234, driver.CUDA_SUCCESS
}

func (under) CuModuleLoadDataEx([]byte) (driver.CUmodule, string, driver.CUresult) {
	return 0, "line 3: wrong", driver.CUDA_ERROR_INVALID_PTX
}

func (under) CuGraphAddMemsetNode(driver.CUgraph, []driver.CUgraphNode, *driver.CUDA_MEMSET_NODE_PARAMS, driver.CUcontext) (driver.CUgraphNode, driver.CUresult) {
	return 9, driver.CUDA_SUCCESS
}

func TestLines(t *testing.T) {
	var b strings.Builder
	d := New(under{}, &b, nil)
	p, r := d.CuMemAlloc(1024)
	require.Equal(t, driver.CUDA_SUCCESS, r)
	require.Equal(t, driver.CUdeviceptr(0x1234), p)
	_, log, r := d.CuModuleLoadDataEx([]byte("ptx"))
	require.Equal(t, driver.CUDA_ERROR_INVALID_PTX, r)
	require.Equal(t, "line 3: wrong", log)
	d.CuGraphAddMemsetNode(1, []driver.CUgraphNode{2, 3}, &driver.CUDA_MEMSET_NODE_PARAMS{Dst: 64, Width: 5}, 0)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, 3)
	require.Regexp(t, `^thread \d+ cuMemAlloc\(size=0x400\) = 0x1234, CUDA_SUCCESS, \S+s$`, lines[0])
	require.Regexp(t, `cuModuleLoadDataEx\(image=3 bytes\) = 0x0, "line 3: wrong", CUDA_ERROR_INVALID_PTX, `, lines[1])
	require.Regexp(t, `cuGraphAddMemsetNode\(g=0x1, deps=\[0x2 0x3\], params=\{.*Width:5.*\}, ctx=0x0\) = 0x9, CUDA_SUCCESS, `, lines[2])
}

func TestEntryPointIsHidden(t *testing.T) {
	require.Zero(t, New(under{}, &strings.Builder{}, nil).EntryPoint("cuGraphLaunch"))
}

// TestEveryCallIsTraced looks for calls that the generator missed: they would
// reach the driver underneath and leave no line.
func TestEveryCallIsTraced(t *testing.T) {
	var b strings.Builder
	v, api := reflect.ValueOf(New(fault.New(nil), &b, nil)), reflect.TypeFor[driver.API]()
	for i := range api.NumMethod() {
		m := api.Method(i)
		if m.Name[:2] != "Cu" {
			continue
		}
		args := make([]reflect.Value, m.Type.NumIn())
		for j := range args {
			args[j] = reflect.Zero(m.Type.In(j))
		}
		b.Reset()
		v.Interface().(*tracer).API.(*fault.Driver).Fail("", 1, driver.CUDA_ERROR_UNKNOWN)
		v.MethodByName(m.Name).Call(args)
		require.Contains(t, b.String(), "c"+m.Name[1:]+"(")
		require.Contains(t, b.String(), "CUDA_ERROR_UNKNOWN, ")
	}
}
