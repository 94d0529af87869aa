// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptx"
)

// FuzzLoad requires of any text that it gives a sound module or one of the
// errors that Load promises.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.ptx")
	require.NoError(f, err)
	for _, file := range append(files, "../ptx/testdata/spelling.ptx", "../ptx/testdata/nvrtc/reduce.ptx") {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Load("fuzz", text)
		if err != nil {
			var syntax *ptx.SyntaxError
			var refused *UnsupportedError
			require.True(t, errors.As(err, &syntax) || errors.As(err, &refused))
			return
		}
		require.NotPanics(t, func() { m.Format() })
		for _, k := range m.Kernels {
			if k.Err == nil {
				requireSound(t, &k.Func)
			}
		}
	})
}
