// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxir"
)

// loadFile loads a PTX file on a device.
func loadFile(t testing.TB, d *Device, path string) *Module {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return loadText(t, d, filepath.Base(path), string(text))
}

func loadText(t testing.TB, d *Device, name, text string) *Module {
	t.Helper()
	ir, err := ptxir.Load(name, text)
	require.NoError(t, err)
	m, err := d.Load(ir)
	require.NoError(t, err)
	return m
}

func TestCompilerOutputDecodes(t *testing.T) {
	files, err := filepath.Glob("../ptx/testdata/nvrtc/*.ptx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	d := NewDevice(Config{})
	defer d.Close()
	for _, file := range files {
		m := loadFile(t, d, file)
		for _, name := range m.KernelNames() {
			_, err := m.Kernel(name)
			require.NoError(t, err, file)
		}
	}
}
