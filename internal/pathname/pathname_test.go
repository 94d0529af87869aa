// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package pathname

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesAreNotCleaned(t *testing.T) {
	require.Equal(t, "a/link/../v.h", Join("a/link", "../v.h"))
	require.Equal(t, "a/link/../v.h", Join("a/link/", "../v.h"))
	require.Equal(t, "./v.h", Join(".", "v.h"))
	require.Equal(t, "./v.h", Join("", "v.h"))
	require.Equal(t, "/v.h", Join("/", "v.h"))
	require.Equal(t, "/a/b", In("/x", "/a/b"))
	require.Equal(t, "/x/../b", In("/x", "../b"))
	for file, folder := range map[string]string{
		"a/link/../v.h": "a/link/..", "v.h": ".", "/v.h": "/", "./v.h": ".", "a//v.h": "a/",
	} {
		require.Equal(t, folder, Folder(file), file)
	}
}

func TestAbsolute(t *testing.T) {
	here := t.TempDir()
	link := here + "/link"
	require.NoError(t, os.Symlink(here, link))
	t.Chdir(link) // sets PWD
	require.Equal(t, here+"/./v.h", Absolute("./v.h"))
	require.Equal(t, "/a/../v.h", Absolute("/a/../v.h"))
}
