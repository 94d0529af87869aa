// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// pinned matches the version of a module in a file of go.mod's kind.
var pinned = regexp.MustCompile(`(?m)^(?:require )?\s*(\S+) (v\S+)`)

// What gopy generates calls gopy's own package, which is linked in: both are of
// one version, and so is all else that is in both files.
func TestToolsHaveTheVersionsThatAreLinkedIn(t *testing.T) {
	versions := func(file string) map[string]string {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		of := map[string]string{}
		for _, m := range pinned.FindAllStringSubmatch(string(text), -1) {
			of[m[1]] = m[2]
		}
		return of
	}
	linked, tools := versions("go.mod"), versions("tools.mod")
	require.Contains(t, linked, "github.com/go-python/gopy")
	require.Subset(t, tools, linked)
}
