// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// marker stands between a module and what it is lowered to.
const marker = "\n// lowered:\n"

func TestLowering(t *testing.T) {
	files, err := filepath.Glob("testdata/*.ptx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			text, want, _ := strings.Cut(string(content), marker)
			m, err := Load(filepath.Base(file), text)
			require.NoError(t, err)
			for _, f := range m.Funcs {
				requireSound(t, f)
			}
			for _, k := range m.Kernels {
				require.NoError(t, k.Err)
				requireSound(t, &k.Func)
			}
			got := "//\t" + strings.ReplaceAll(strings.TrimSuffix(m.Format(), "\n"), "\n", "\n//\t") + "\n"
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(strings.TrimSuffix(text, "\n")+"\n"+marker+got), 0o644))
				return
			}
			require.Equal(t, want, got)
		})
	}
}
