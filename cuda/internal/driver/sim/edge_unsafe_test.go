// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// What waits for a kernel programmatically does not wait for its end, so it does
// not join the stream that has forked there. See CUDA's programming guide, "Edge
// Data".
func TestProgrammaticEdgeJoinsNoCapture(t *testing.T) {
	o := newOne(t, open(t, "cc=9.0"))
	other, r := o.CuStreamCreateWithPriority(driver.CU_STREAM_NON_BLOCKING, 0)
	ok(t, r)
	fork, r := o.CuEventCreate(0)
	ok(t, r)
	var pinner runtime.Pinner
	defer pinner.Unpin()
	early := o.config
	attribute := driver.CUlaunchAttribute{ID: driver.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION}
	attribute.Value[0] = 1
	pinner.Pin(&attribute)
	early.Attrs, early.NumAttrs = unsafe.Pointer(&attribute), 1
	for _, tt := range []struct {
		config driver.CUlaunchConfig
		want   driver.CUresult
	}{{o.config, driver.CUDA_SUCCESS}, {early, driver.CUDA_ERROR_STREAM_CAPTURE_UNJOINED}} {
		ok(t, o.CuStreamBeginCapture(o.stream, driver.CU_STREAM_CAPTURE_MODE_RELAXED))
		ok(t, o.CuLaunchKernelEx(&o.config, o.kernel, o.args))
		ok(t, o.CuEventRecord(fork, o.stream))
		ok(t, o.CuStreamWaitEvent(other, fork, 0))
		ok(t, o.CuLaunchKernelEx(&tt.config, o.kernel, o.args))
		_, r = o.CuStreamEndCapture(o.stream)
		require.Equal(t, tt.want, r)
	}
}
