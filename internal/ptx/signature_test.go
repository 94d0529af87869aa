// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSignatures(t *testing.T) {
	got, err := Signatures(read(t, "spelling.ptx"))
	require.NoError(t, err)
	require.Equal(t, map[string][]Param{
		"bare": {},
		"kernel": {
			{Name: "pointer", Type: "u64", Size: 8, Align: 8, Offset: 0, Pointer: true},
			{Name: "plain", Type: "u64", Size: 8, Align: 8, Offset: 8, Pointer: true},
			{Name: "structure", Type: "b8", Size: 24, Align: 8, Offset: 16, ArrayLen: 24},
			{Name: "scalar", Type: "f32", Size: 4, Align: 4, Offset: 40},
			{Name: "pair", Type: "f32", Size: 8, Align: 8, Offset: 48, ArrayLen: 1},
		},
	}, got)
}

func TestSignaturesPassBodiesUnread(t *testing.T) {
	got, err := Signatures(`.entry k(.param .u8 a, .param .f64 b) { frob "}" /* } */ // }
		{ ... } } .entry l() {}`)
	require.NoError(t, err)
	require.Equal(t, map[string][]Param{
		"k": {{Name: "a", Type: "u8", Size: 1, Align: 1}, {Name: "b", Type: "f64", Size: 8, Align: 8, Offset: 8}},
		"l": {},
	}, got)
}
