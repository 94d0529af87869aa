// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// counting is a driver that counts one call and panics at the others.
type counting struct {
	driver.API
	inits int
}

func (c *counting) CuInit(uint32) driver.CUresult { c.inits++; return driver.CUDA_SUCCESS }

func (c *counting) CuMemAlloc(uint64) (driver.CUdeviceptr, driver.CUresult) {
	return 64, driver.CUDA_SUCCESS
}

func TestFailNthCall(t *testing.T) {
	under := &counting{}
	d := New(under)
	d.Fail("CuInit", 2, driver.CUDA_ERROR_UNKNOWN)
	require.Equal(t, driver.CUDA_SUCCESS, d.CuInit(0))
	require.Equal(t, driver.CUDA_ERROR_UNKNOWN, d.CuInit(0))
	require.Equal(t, driver.CUDA_SUCCESS, d.CuInit(0))
	require.Equal(t, 2, under.inits, "the failed call did nothing")
	require.Equal(t, 3, d.Calls("CuInit"))
}

func TestFailAnyCall(t *testing.T) {
	d := New(&counting{})
	d.CuInit(0)
	d.Fail("", 2, driver.CUDA_ERROR_OUT_OF_MEMORY)
	require.Equal(t, driver.CUDA_SUCCESS, d.CuInit(0))
	p, r := d.CuMemAlloc(16)
	require.Equal(t, driver.CUDA_ERROR_OUT_OF_MEMORY, r)
	require.Zero(t, p)
}

func TestFailTwice(t *testing.T) {
	d := New(&counting{})
	d.Fail("CuInit", 1, driver.CUDA_ERROR_UNKNOWN)
	d.Fail("", 1, driver.CUDA_ERROR_OUT_OF_MEMORY)
	require.Equal(t, driver.CUDA_ERROR_UNKNOWN, d.CuInit(0))
	require.Equal(t, driver.CUDA_ERROR_OUT_OF_MEMORY, d.CuInit(0))
	require.Equal(t, driver.CUDA_SUCCESS, d.CuInit(0))
}

func TestClear(t *testing.T) {
	d := New(&counting{})
	require.False(t, d.Clear())
	d.Fail("CuInit", 1, driver.CUDA_ERROR_UNKNOWN)
	require.True(t, d.Clear())
	require.Equal(t, driver.CUDA_SUCCESS, d.CuInit(0))
	require.Equal(t, 1, d.Calls(""))
}

// TestEveryCallFails goes over driver.API, so that a call that the generator
// missed is found: it would reach the nil driver.
func TestEveryCallFails(t *testing.T) {
	d := New(nil)
	v, api := reflect.ValueOf(d), reflect.TypeFor[driver.API]()
	failed := 0
	for i := range api.NumMethod() {
		m := api.Method(i)
		if m.Name[:2] != "Cu" {
			continue
		}
		d.Fail(m.Name, 1, driver.CUDA_ERROR_NOT_SUPPORTED)
		args := make([]reflect.Value, m.Type.NumIn())
		for j := range args {
			args[j] = reflect.Zero(m.Type.In(j))
		}
		out := v.MethodByName(m.Name).Call(args)
		require.Equal(t, driver.CUDA_ERROR_NOT_SUPPORTED, out[len(out)-1].Interface(), m.Name)
		failed++
	}
	require.Greater(t, failed, 90)
}
