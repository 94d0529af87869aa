// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/drivertest"
)

// harmless are calls that touch nothing but the calling thread, or only tell facts.
var harmless = []string{
	"CuInit", "CuDriverGetVersion", "CuDeviceGet", "CuDeviceGetCount", "CuDeviceGetName", "CuDeviceGetUuid", "CuDeviceTotalMem",
	"CuDeviceGetAttribute", "CuDeviceGetPCIBusId", "CuDeviceCanAccessPeer", "CuDeviceGetDefaultMemPool",
	"CuDevicePrimaryCtxGetState", "CuCtxGetId",
	"CuCtxGetCurrent", "CuCtxSetCurrent", "CuCtxPushCurrent", "CuCtxPopCurrent", "CuCtxGetDevice", "CuThreadExchangeStreamCaptureMode",
}

// TestHostFunctionMayCallNothing makes each call of the driver in a host
// function, with zeros.
func TestHostFunctionMayCallNothing(t *testing.T) {
	o := newOne(t, open(t, ""))
	const fn driver.CUhostFn = 0xC2
	got := map[string]driver.CUresult{}
	hostFunctions[fn] = func(uintptr) {
		api := reflect.ValueOf(o.API)
		for i := range api.NumMethod() {
			name := api.Type().Method(i).Name
			if strings.HasPrefix(name, "Cu") && !slices.Contains(harmless, name) {
				got[name] = drivertest.CallWithZeros(api.Method(i))
			}
		}
	}
	defer delete(hostFunctions, fn)
	ok(t, o.CuLaunchHostFunc(o.stream, fn, 0))
	ok(t, o.CuStreamSynchronize(o.stream))
	require.NotEmpty(t, got)
	for name, r := range got {
		require.Equal(t, driver.CUDA_ERROR_NOT_PERMITTED.String(), r.String(), name)
	}
}
