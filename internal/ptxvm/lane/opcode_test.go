// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxir"
)

// withoutExecutor are the operations that the executor leaves out, and why.
var withoutExecutor = map[ptxir.Op]string{
	ptxir.OpNop:       "dropped when decoding",
	ptxir.OpPrefetch:  "dropped when decoding",
	ptxir.OpVideo:     "scalar video instructions: lowered to ordinary ones",
	ptxir.OpWmmaLoad:  "wmma: lowered to mma and loads and stores",
	ptxir.OpWmmaStore: "wmma: lowered to mma and loads and stores",
	ptxir.OpWmmaMma:   "wmma: lowered to mma and loads and stores",
}

func TestEveryOperationHasAnExecutor(t *testing.T) {
	inTable := map[ptxir.Op]bool{}
	for _, e := range generated {
		inTable[e.key.op] = true
	}
	require.NotEmpty(t, ptxir.Ops())
	for _, op := range ptxir.Ops() {
		has := inTable[op] || choosers[op] != nil
		_, listed := withoutExecutor[op]
		require.NotEqual(t, has, listed, "%s: executor %v, listed as missing %v", op, has, listed)
	}
}

func TestGeneratedKeysAreUnique(t *testing.T) {
	require.Len(t, executors(), len(generated))
}
