// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/check"
)

const ptxFolder = "../../ptx/testdata/nvrtc"

// TestKernels runs what NVRTC made of the acceptance kernels and compares with
// references in Go: bit by bit, but for softmax.
func TestKernels(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := ptxvm.NewDevice(ptxvm.Config{})
			defer d.Close()
			s, err := newSession(d, ptxFolder, c.file)
			require.NoError(t, err)
			defer s.close()
			run, check, err := c.prepare(s, c.small)
			require.NoError(t, err)
			require.NoError(t, run())
			require.NotZero(t, s.instructions)
			require.NoError(t, check())
		})
	}
}

// TestKernelsAreClean: the checks find nothing in correct kernels.
func TestKernelsAreClean(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := ptxvm.NewDevice(ptxvm.Config{})
			defer d.Close()
			s, err := newSession(d, ptxFolder, c.file)
			require.NoError(t, err)
			defer s.close()
			s.checks = check.Races | check.Uninitialized
			run, check, err := c.prepare(s, c.small)
			require.NoError(t, err)
			for range 2 {
				require.NoError(t, run())
			}
			require.NoError(t, check())
			require.NotZero(t, s.task)
			require.Empty(t, s.found)
		})
	}
}

func BenchmarkKernels(b *testing.B) {
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			d := ptxvm.NewDevice(ptxvm.Config{})
			defer d.Close()
			s, err := newSession(d, ptxFolder, c.file)
			require.NoError(b, err)
			defer s.close()
			run, check, err := c.prepare(s, c.full)
			require.NoError(b, err)
			s.instructions = 0
			for b.Loop() {
				require.NoError(b, run())
			}
			b.ReportMetric(float64(s.instructions)/1e6/b.Elapsed().Seconds(), "Minstr/s")
			require.NoError(b, check())
		})
	}
}
