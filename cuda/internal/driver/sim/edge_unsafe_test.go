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
