// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxir"
)

func TestLocalName(t *testing.T) {
	for name, want := range map[string]string{
		"tile":                              "tile",
		"_ZZ7reversePfPKfE1m":               "m",
		"_ZZ3sumIfLi256EEvPKT_PS0_E4tile":   "tile",
		"_ZZ3sumIfLi256EEvPKT_PS0_E4tile_0": "tile",
		"_ZZ1kvE5E1m3x":                     "E1m3x",
		"_ZZ1kvE":                           "_ZZ1kvE",
		"_ZN4tile1mE":                       "_ZN4tile1mE",
	} {
		require.Equal(t, want, localName(&ptxir.Var{Name: name}), name)
	}
}
