// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// touch gives the words of a page cells of their own, if there are any.
func touch(r *Range, page uint64) bool {
	r.Lock()
	defer r.Unlock()
	return r.Cell(page*pageWords) != nil
}

// Pages with cells are limited at one time: those of memory that is gone do not
// count, or a program that allocates and frees would be left without checks.
func TestCellsOfForgottenRangesAreGivenBack(t *testing.T) {
	const base, size = 0x10000, 3 * PageBytes
	var table Table
	for name, end := range map[string]func(){
		"freed":     func() { table.Forget(base) },
		"replaced":  func() { table.Get(base, PageBytes) },
		"undefined": func() { table.Undefine(base, size) },
	} {
		r := table.Get(base, size)
		require.True(t, touch(r, 0), name)
		require.True(t, touch(r, 2), name)
		require.EqualValues(t, 2, table.fine.Load(), name)
		end()
		require.False(t, touch(r, 1), "%s: a kernel that still runs", name)
		require.Zero(t, table.fine.Load(), name)
	}
	table.Forget(base)
	require.Zero(t, table.undefined.Load())
}
