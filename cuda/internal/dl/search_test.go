// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package dl

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A library in the current folder is opened if a variable names that folder, and not
// one of the loader's by its name.
func TestFolders(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	require.NoError(t, err)
	t.Setenv("A_PATH", ".::/a/link/..:lib")
	search := Search{Paths: []string{"/wheel/lib", "", "/a/link/.."}}
	require.Equal(t, []string{here + "/.", "/a/link/..", here + "/lib", "/wheel/lib"}, search.First("A_PATH"))
	t.Setenv("A_PATH", "")
	require.Equal(t, []string{"/wheel/lib", "/a/link/.."}, search.First("A_PATH"))
	for _, folder := range search.First("A_PATH") {
		require.True(t, strings.HasPrefix(folder, "/"))
	}
	t.Setenv("CUDA_HOME", "/opt/cuda")
	t.Setenv("CUDA_PATH", "toolkit")
	require.Equal(t,
		[]string{"/opt/cuda/lib64", "/opt/cuda/lib", here + "/toolkit/lib64", here + "/toolkit/lib", "/usr/local/cuda/lib64", "/usr/local/cuda/lib"},
		InToolkits("lib64", "lib"))
}

func TestAdvice(t *testing.T) {
	require.Equal(t, "`pip install cudago[sim]` brings it along", Search{}.Advice("sim", "A_PATH"))
	frozen := Search{IsFrozen: true}.Advice("sim", "A_PATH")
	require.Contains(t, frozen, "this program is frozen")
	require.Contains(t, frozen, "A_PATH")
}
