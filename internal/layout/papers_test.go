// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// named matches what a paper calls a file or a folder: a path in backquotes or
// in a link. What has a blank, a star or an ellipsis is no path.
var named = regexp.MustCompile("`([\\w.-]+(?:/[\\w.-]+)+)`|\\]\\(([\\w./-]+)(?:#[\\w-]+)?\\)")

// A paper that names files which are gone misleads more than it helps.
func TestPapersNameWhatIsThere(t *testing.T) {
	for _, paper := range []string{"README.md", "ARCHITECTURE.md", "RATIONALE.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join(root, paper))
		require.NoError(t, err)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			name := m[1] + m[2]
			if strings.HasSuffix(name, ".so") || strings.HasPrefix(name, "build/") {
				continue // built
			}
			_, err := os.Stat(filepath.Join(root, name))
			require.NoError(t, err, paper)
		}
	}
}
