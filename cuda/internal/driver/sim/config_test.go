// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseConfig(t *testing.T) {
	c, err := parseConfig("")
	require.NoError(t, err)
	require.Equal(t, config{devices: 1, major: 7, minor: 5, memory: 2 << 30, pageable: true}, c)

	c, err = parseConfig("devices=2, cc=8.6,memory=8GiB,pageable=0,check=full,seed=7,steps=2e9,workers=2,hostile=1,faults=0.01")
	require.NoError(t, err)
	require.Equal(t, config{devices: 2, major: 8, minor: 6, memory: 8 << 30, full: true, seed: 7, steps: 2000000000, workers: 2, hostile: true, faulty: true, faults: 0.01}, c)
}

func TestParseConfigRefuses(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown setting", "cores=4", `may have devices, cc, memory, pageable, check, seed, steps, workers, hostile and faults, got "cores=4"`},
		{"no device", "devices=0", `devices must be a whole number from 1 to 16, got "0"`},
		{"devices without number", "devices=many", `devices must be a whole number from 1 to 16, got "many"`},
		{"devices without value", "devices", `devices must be a whole number from 1 to 16, got ""`},
		{"no worker", "workers=0", `workers must be a whole number from 1 to 1024, got "0"`},
		{"unknown capability", "cc=6.1", `cc must be one of 7.5, 8.0, 8.6, 8.9, 9.0, 10.0, 12.0, got "6.1"`},
		{"capability without dot", "cc=x", `cc must be one of 7.5, 8.0, 8.6, 8.9, 9.0, 10.0, 12.0, got "x"`},
		{"no memory", "memory=0", `memory must be a size such as 512MiB or 8GiB, above 0 and at most 64 TiB, got "0"`},
		{"memory without number", "memory=much", `memory must be a size such as 512MiB or 8GiB, above 0 and at most 64 TiB, got "much"`},
		{"unknown check", "check=some", `check must be default or full, got "some"`},
		{"seed that is no number", "seed=x", `seed must be a whole number from 0 to 2^64 - 1, got "x"`},
		{"no steps", "steps=0", `steps must be a number from 1 to 1e18, got "0"`},
		{"steps without number", "steps=many", `steps must be a number from 1 to 1e18, got "many"`},
		{"neither hostile nor not", "hostile=very", `hostile must be 1 or 0, got "very"`},
		{"neither pageable nor not", "pageable=maybe", `pageable must be 1 or 0, got "maybe"`},
		{"more faults than calls", "faults=2", `faults must be a share from 0 to 1, got "2"`},
		{"no share of faults", "faults=NaN", `faults must be a share from 0 to 1, got "NaN"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseConfig(tt.text)
			require.ErrorContains(t, err, "CUDAGO_SIM, the settings of the simulated driver")
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "strconv")
		})
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]uint64{"64": 64, "64B": 64, "3KiB": 3 << 10, "5MiB": 5 << 20, "2GiB": 2 << 30} {
		var got uint64
		require.Empty(t, parseBytes(&got, text))
		require.Equal(t, want, got, text)
	}
}

func TestRunsOn(t *testing.T) {
	tests := []struct {
		target       string
		major, minor int
		want         bool
	}{
		{"sm_75", 7, 5, true},
		{"sm_52", 7, 5, true},
		{"sm_80", 7, 5, false},
		{"sm_90a", 9, 0, true},
		{"sm_90a", 10, 0, false},
		{"sm_100f", 10, 0, true},
		{"sm_90f", 10, 0, false},
		{"sm_", 9, 0, false},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, runsOn(tt.target, tt.major, tt.minor), "%s on %d.%d", tt.target, tt.major, tt.minor)
	}
}
