// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenChoice(t *testing.T) {
	_, err := Open(Options{Driver: "amd"})
	require.EqualError(t, err, `driver must be "nvidia", "sim" or "auto", got "amd"`)

	t.Setenv("CUDAGO_DRIVER", "amd")
	_, err = Open(Options{})
	require.ErrorContains(t, err, `got "amd"`)

	t.Setenv("CUDAGO_DRIVER", "sim")
	d, err := Open(Options{})
	require.NoError(t, err)
	require.Equal(t, "sim", d.Name())
	require.NoError(t, d.Close())
}

func TestOpenWithoutNVIDIA(t *testing.T) {
	t.Setenv("CUDAGO_LIBCUDA", "libcuda-that-is-not-there.so")
	_, err := Open(Options{Driver: "nvidia"})
	var missing *DriverNotFoundError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []string{"libcuda-that-is-not-there.so"}, missing.Tried)
	require.ErrorContains(t, err, "CUDAGO_DRIVER=sim")

	d, err := Open(Options{Driver: "auto"})
	require.NoError(t, err)
	require.Equal(t, "sim", d.Name())
	require.True(t, strings.HasPrefix(d.Notice(), "using the simulated driver, because NVIDIA's driver library was not found"), d.Notice())
	require.NotContains(t, d.Notice(), "\n", "one sentence")
	require.NoError(t, d.Close())
}

func TestOpenSimWithABadSetting(t *testing.T) {
	t.Setenv("CUDAGO_SIM", "devices=2")
	_, err := Open(Options{Driver: "sim", Sim: "colour=red"})
	var bad *ArgumentError
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "colour=red")

	d, err := Open(Options{Driver: "sim"})
	require.NoError(t, err)
	require.Equal(t, 2, d.DeviceCount(), "of the environment")
	require.NoError(t, d.Close())
}

func TestTrace(t *testing.T) {
	var b strings.Builder
	d, err := Open(Options{Driver: "sim", Trace: &b})
	require.NoError(t, err)
	require.Regexp(t, `cuInit\(flags=0\) = CUDA_SUCCESS`, b.String())
	require.Zero(t, d.EntryPoint("cuGraphLaunch"), "so that C's calls are traced too")
	require.NoError(t, d.Close())
}
