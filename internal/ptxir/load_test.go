// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func nvrtc(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "ptx", "testdata", "nvrtc", name))
	require.NoError(t, err)
	return string(text)
}

func TestCompilerOutputLoads(t *testing.T) {
	files, err := filepath.Glob("../ptx/testdata/nvrtc/*.ptx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			m, err := Load(name, nvrtc(t, name))
			require.NoError(t, err)
			require.NotEmpty(t, m.Kernels)
			require.Empty(t, m.Unsupported())
			for _, k := range m.Kernels {
				requireSound(t, &k.Func)
			}
		})
	}
}

// requireSound checks what every lowered function must satisfy.
func requireSound(t *testing.T, f *Func) {
	t.Helper()
	reg := func(r Reg) { require.True(t, r == NoReg || int(r) < len(f.Regs), "register %d of %d", r, len(f.Regs)) }
	instr := func(in *Instr) {
		require.NotEqual(t, OpInvalid, in.Op)
		for _, r := range append(append([]Reg{in.Guard}, in.Dst...), in.Src...) {
			reg(r)
		}
	}
	require.NotEmpty(t, f.Blocks)
	for i := range f.Blocks {
		b := &f.Blocks[i]
		for k := range b.Instrs {
			require.False(t, b.Instrs[k].Op.Convergent())
			instr(&b.Instrs[k])
		}
		for _, target := range b.Term.Targets {
			require.Less(t, target, len(f.Blocks))
			require.GreaterOrEqual(t, target, 0)
		}
		if b.Term.Kind == TermSync {
			require.True(t, b.Term.Instr.Op.Convergent())
			instr(b.Term.Instr)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	text := nvrtc(b, "unrolled.ptx")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load("unrolled.ptx", text); err != nil {
			b.Fatal(err)
		}
	}
}
