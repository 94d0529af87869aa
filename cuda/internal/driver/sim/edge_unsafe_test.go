// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"runtime"
	"strings"
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

// touchEarly is kernel touch in a module whose device has programmatic launches,
// with some lines in front of its first access.
func touchEarly(function, lines string) string {
	text := strings.Replace(touchPTX, ".version 6.4\n.target sm_75", ".version 7.8\n.target sm_90", 1)
	text = strings.Replace(text, ".visible", function+".visible", 1)
	return strings.Replace(text, "\tld.global", lines+"\tld.global", 1)
}

// A kernel that starts early races with what it never waits for; and what comes
// behind it does, too.
func TestRacingBehindAProgrammaticEdge(t *testing.T) {
	const wait = "\tgriddepcontrol.wait;\n"
	for name, tt := range map[string]struct {
		function, lines string
		port            uint8
		races           bool
	}{
		"never":         {"", "\tgriddepcontrol.launch_dependents;\n", driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, true},
		"launch order":  {"", "", driver.CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, true},
		"complete":      {"", "", driver.CU_GRAPH_KERNEL_NODE_PORT_DEFAULT, false},
		"waits":         {"", wait, driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, false},
		"in a function": {".func sync()\n{\n" + wait + "\tret;\n}\n", "\tcall sync;\n", driver.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOne(t, open(t, "cc=9.0,workers=2"))
			c := driver.CheckerOf(o.API)
			_, err := c.SetChecks("races,collect")
			require.NoError(t, err)
			g, r := o.CuGraphCreate(0)
			ok(t, r)
			first := o.touching(t, g, o.args)
			o.kernel = o.load(t, touchEarly(tt.function, tt.lines), "touch")
			middle := o.touching(t, g, o.args)
			data := driver.CUgraphEdgeData{FromPort: tt.port, Type: min(tt.port, driver.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)}
			ok(t, o.CuGraphAddDependencies(g, []driver.CUgraphNode{first}, []driver.CUgraphNode{middle}, []driver.CUgraphEdgeData{data}))
			last := o.touching(t, g, o.args, middle)
			c.NameNodes([]driver.CUgraphNode{first, middle, last}, []string{"first", "middle", "last"})
			ok(t, o.CuGraphLaunch(o.instantiate(t, g), o.stream))
			ok(t, o.CuStreamSynchronize(o.stream))
			reports := strings.Join(c.TakeReports(), "\n")
			if !tt.races {
				require.Empty(t, reports)
				return
			}
			require.Regexp(t, `graph launch, node "middle": race in global memory .*, node "first" of a graph launch .*; the later may start before `+
				`the earlier has ended, and never executes griddepcontrol.wait`, reports)
		})
	}
}

// The same of launches on a stream.
func TestRacingBehindAProgrammaticLaunch(t *testing.T) {
	const forgets, waits = "", "\tgriddepcontrol.wait;\n"
	for name, tt := range map[string]struct {
		lines   [3]string // of the kernels
		between bool      // something else than kernels
		races   bool
	}{
		"the second forgets":       {[3]string{forgets, forgets, waits}, false, true},
		"both forget":              {[3]string{forgets, forgets, forgets}, false, true},
		"both wait":                {[3]string{forgets, waits, waits}, false, false},
		"nothing runs in parallel": {[3]string{forgets, forgets, forgets}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOne(t, open(t, "cc=9.0,workers=2"))
			c := driver.CheckerOf(o.API)
			_, err := c.SetChecks("races,collect")
			require.NoError(t, err)
			var pinner runtime.Pinner
			defer pinner.Unpin()
			attribute := driver.CUlaunchAttribute{ID: driver.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION}
			attribute.Value[0] = 1
			pinner.Pin(&attribute)
			e, r := o.CuEventCreate(0)
			ok(t, r)
			for i, lines := range tt.lines {
				if i == 1 {
					o.config.Attrs, o.config.NumAttrs = unsafe.Pointer(&attribute), 1
				}
				ok(t, o.CuLaunchKernelEx(&o.config, o.load(t, touchEarly("", lines), "touch"), o.args))
				if tt.between {
					ok(t, o.CuEventRecord(e, o.stream))
				}
			}
			ok(t, o.CuStreamSynchronize(o.stream))
			ok(t, o.CuLaunchKernelEx(&o.config, o.load(t, touchEarly("", forgets), "touch"), o.args))
			ok(t, o.CuStreamSynchronize(o.stream))
			reports := c.TakeReports()
			require.Equal(t, tt.races, len(reports) > 0, strings.Join(reports, "\n"))
			for _, report := range reports {
				require.Contains(t, report, "the later may start before the earlier has ended")
			}
		})
	}
}
