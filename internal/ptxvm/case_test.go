// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// TestCases runs every file of testdata.
func TestCases(t *testing.T) {
	n := 0
	require.NoError(t, filepath.WalkDir("testdata", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".ptx" {
			return err
		}
		n++
		name, _ := filepath.Rel("testdata", path)
		t.Run(strings.TrimSuffix(filepath.ToSlash(name), ".ptx"), func(t *testing.T) { vmtest.ReadCase(t, path).Run(t) })
		return nil
	}))
	require.NotZero(t, n)
}
