// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// byLowering are operations that no row of the tables names, because lowering
// makes them out of others.
var byLowering = map[Op]string{
	OpPack:        "mov",
	OpUnpack:      "mov",
	OpReadSpecial: "mov from %clock and its like",
	OpVideo:       "scalar video instructions become ordinary ones, the others are refused",
}

func TestEveryOperationHasAForm(t *testing.T) {
	has := map[Op]bool{}
	for _, f := range allForms() {
		has[f.op] = true
	}
	for _, op := range Ops() {
		require.NotEmpty(t, op.String())
		require.NotEqual(t, has[op], byLowering[op] != "", "%s", op)
	}
}

func TestFormsAreConsistent(t *testing.T) {
	families() // makes the rows ready
	names := map[Op]bool{}
	for _, op := range Ops() {
		names[op] = true
	}
	for _, f := range allForms() {
		if f.reason != "" {
			require.NotEmpty(t, f.section.title, f.name)
			require.NotEmpty(t, f.hint, f.name)
			continue
		}
		require.True(t, f.lower != nil || names[f.op], "%s has no operation", f.name)
		for _, letter := range f.args {
			require.True(t, strings.ContainsRune("dwuPaAfipn?", letter), "%s: letter %c", f.name, letter)
		}
		for _, g := range f.groups {
			for _, w := range g.words {
				require.True(t, knownWord(w), "%s: word %s", f.name, w)
			}
		}
	}
}

// Modifiers that may be repeated are so any number of times.
func TestRepeatedModifiers(t *testing.T) {
	const n = 200_000
	_, err := Load("test", inKernel("ex2"+strings.Repeat(".approx", n)+".f32 %f1, %f2; ret;"))
	require.NoError(t, err)
	_, err = Load("test", inKernel("ex2.approx.f32"+strings.Repeat(".f32", n)+" %f1, %f2; ret;"))
	require.ErrorContains(t, err, "ex2.approx.f32")
	require.Less(t, len(err.Error()), 2000)
}
