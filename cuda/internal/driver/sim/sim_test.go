// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/drivertest"
	"github.com/cudago/cudago/cuda/internal/driver/sim"
)

// countUp is the address that stands for drivertest's counting function.
const countUp driver.CUhostFn = 0xC0

func openBench(b *testing.B) driver.API { return open(b, "") }

// open opens a simulated driver for the length of a test.
func open(t testing.TB, config string) driver.API {
	t.Helper()
	api, err := sim.Open(sim.Options{Config: config, CallHost: callHost, Printf: io.Discard})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, api.Close()) })
	return api
}

func TestConformance(t *testing.T) {
	for _, config := range []string{"", "devices=2,cc=9.0,check=full,seed=7,pageable=0"} {
		t.Run(config, func(t *testing.T) {
			drivertest.Run(t, func(t *testing.T) driver.API { return open(t, config) },
				drivertest.Options{HostFn: countUp, Exporter: exporter{t}, Faults: true})
		})
	}
}
