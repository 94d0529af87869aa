// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(text)
}

func nvrtcFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/nvrtc/*.ptx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestCompilerOutputSurvivesPrinting(t *testing.T) {
	for _, file := range nvrtcFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			m, err := Parse(string(text))
			require.NoError(t, err)
			require.Equal(t, 9, m.Major)
			once := m.String()
			again, err := Parse(once)
			require.NoError(t, err)
			require.Equal(t, once, again.String())
		})
	}
}

func BenchmarkParse(b *testing.B) {
	text := read(b, "nvrtc/unrolled.ptx")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSignatures(b *testing.B) {
	text := read(b, "nvrtc/unrolled.ptx")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Signatures(text); err != nil {
			b.Fatal(err)
		}
	}
}
