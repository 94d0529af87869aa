// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse requires of any text that it gives a tree or a SyntaxError, and of
// a tree that its printed form parses to what prints the same.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/spelling.ptx", "testdata/nvrtc/saxpy_lineinfo.ptx", "testdata/nvrtc/reduce.ptx"} {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add(".version 8.0 .func f(){@!%p bra L+1;{L:}}")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			var syntax *SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.Positive(t, syntax.Line)
			require.Positive(t, syntax.Column)
			require.NotEmpty(t, syntax.Error())
			return
		}
		once := m.String()
		again, err := Parse(once)
		require.NoError(t, err, once)
		require.Equal(t, once, again.String())
		_, err = Signatures(text)
		require.NoError(t, err)
	})
}

func TestNestingIsLimited(t *testing.T) {
	const depth = 100_000
	for name, text := range map[string]string{
		"blocks":       ".func f()" + strings.Repeat("{", depth),
		"initialisers": ".global .u32 x[] = " + strings.Repeat("{", depth),
		"parentheses":  ".global .u32 x = " + strings.Repeat("(", depth),
		"minus signs":  ".global .u32 x = " + strings.Repeat("- ", depth) + "1;",
		"conditions":   ".global .u32 x = " + strings.Repeat("1?", depth),
		"vectors":      ".func f(){mov.b32 " + strings.Repeat("{", depth),
		"addresses":    ".func f(){ld.u32 r, " + strings.Repeat("[a,", depth),
		"generic":      ".global .u64 x = " + strings.Repeat("generic(", depth),
		"masks":        ".global .u8 x = " + strings.Repeat("0xff(", depth),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(text)
			var syntax *SyntaxError
			require.ErrorAs(t, err, &syntax)
		})
	}
}
