// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFilesAreCurrent fails when a table was changed and the generator not run:
// go run ./internal/ptxvm/lane/gen.
func TestFilesAreCurrent(t *testing.T) {
	for name, want := range files() {
		got, err := os.ReadFile(filepath.Join("..", "..", "..", "..", name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), "%s is not what the generator writes", name)
	}
}
