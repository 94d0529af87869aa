// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

func TestCompilerOutputDecodes(t *testing.T) {
	files, err := filepath.Glob("../ptx/testdata/nvrtc/*.ptx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	for _, file := range files {
		m := vmtest.LoadFile(t, d, file)
		for _, name := range m.KernelNames() {
			_, err := m.Kernel(name)
			require.NoError(t, err, file)
		}
	}
}
