// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// TestCases runs every file of testdata, also where shared memory begins behind what
// is reserved.
func TestCases(t *testing.T) {
	n := 0
	require.NoError(t, filepath.WalkDir("testdata", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".ptx" {
			return err
		}
		n++
		name, _ := filepath.Rel("testdata", path)
		for _, major := range []int{7, 9} {
			t.Run(fmt.Sprintf("%s/%d.0", strings.TrimSuffix(filepath.ToSlash(name), ".ptx"), major), func(t *testing.T) {
				c := vmtest.ReadCase(t, path)
				c.CCMajor = major
				c.Run(t)
			})
		}
		return nil
	}))
	require.NotZero(t, n)
}
