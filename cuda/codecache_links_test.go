// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/codecache"
	"github.com/cudago/cudago/cuda/internal/nvrtc"
)

// links are ways to come from the folder a to one that has y.h, beside whose parent
// v.h is. Decoys are where the text alone would lead.
var links = map[string]func(t *testing.T, a, real string){
	"folder":        func(t *testing.T, a, real string) { require.NoError(t, os.Rename(real, a+"/link")) },
	"link":          func(t *testing.T, a, real string) { require.NoError(t, os.Symlink(real, a+"/link")) },
	"relative link": func(t *testing.T, a, _ string) { require.NoError(t, os.Symlink("../deep/real/inc", a+"/link")) },
	"link to a link": func(t *testing.T, a, real string) {
		require.NoError(t, os.Symlink(real, a+"/first"))
		require.NoError(t, os.Symlink("first", a+"/link"))
	},
	"link behind a link": func(t *testing.T, a, real string) {
		require.NoError(t, os.Symlink(filepath.Dir(real), a+"/first"))
		require.NoError(t, os.Symlink("first/inc", a+"/link"))
	},
	"linked files": func(t *testing.T, a, real string) {
		require.NoError(t, os.Mkdir(a+"/link", 0o700))
		require.NoError(t, os.Symlink(real+"/y.h", a+"/link/y.h"))
		require.NoError(t, os.Remove(a+"/v.h"))
		require.NoError(t, os.Symlink(filepath.Dir(real)+"/v.h", a+"/v.h"))
	},
}

// included are the ways in which a program can name v.h, seen from the folder a,
// which is the current one.
var included = map[string]func(a string) (string, ProgramOptions){
	"beside the text, in a linked include path": func(a string) (string, ProgramOptions) {
		return `#include "../v.h"`, ProgramOptions{IncludePath: []string{a + "/link"}, Name: "/nowhere/p.cu"}
	},
	"in a header": func(a string) (string, ProgramOptions) {
		return `#include <y.h>`, ProgramOptions{IncludePath: []string{a + "/link"}}
	},
	"through a link": func(a string) (string, ProgramOptions) {
		return `#include <link/../v.h>`, ProgramOptions{IncludePath: []string{a}}
	},
	"beside the text, through a link": func(a string) (string, ProgramOptions) {
		return `#include "link/../v.h"`, ProgramOptions{Name: a + "/p.cu"}
	},
	"absolute": func(a string) (string, ProgramOptions) {
		return `#include "` + a + `/link/../v.h"`, ProgramOptions{}
	},
	"name of the program": func(a string) (string, ProgramOptions) {
		return `#include "../v.h"`, ProgramOptions{Name: a + "/link/p.cu"}
	},
	"relative name of the program": func(string) (string, ProgramOptions) {
		return `#include "../v.h"`, ProgramOptions{Name: "link/p.cu"}
	},
	"include path behind a link": func(a string) (string, ProgramOptions) {
		return `#include <v.h>`, ProgramOptions{IncludePath: []string{a + "/link/.."}}
	},
	"relative include path": func(string) (string, ProgramOptions) {
		return `#include <v.h>`, ProgramOptions{IncludePath: []string{"link/.."}}
	},
	"option": func(string) (string, ProgramOptions) {
		return ``, ProgramOptions{Options: []string{"-include", "link/../v.h"}}
	},
	"option of a program elsewhere": func(string) (string, ProgramOptions) {
		return ``, ProgramOptions{Options: []string{"-include", "link/../v.h"}, Name: "/nowhere/p.cu"}
	},
	"option, in the include path": func(a string) (string, ProgramOptions) {
		return ``, ProgramOptions{Options: []string{"--pre-include=y.h", "-I" + a + "/link"}}
	},
	"next": func(a string) (string, ProgramOptions) {
		return `#include_next <y.h>`, ProgramOptions{IncludePath: []string{a, a + "/link"}}
	},
	"asked for": func(a string) (string, ProgramOptions) {
		return "#if __has_include(<link/../v.h>)\n#include <link/../v.h>\n#endif", ProgramOptions{IncludePath: []string{a}}
	},
	"header in memory": func(a string) (string, ProgramOptions) {
		return `#include "` + a + `/link/h.h"`, ProgramOptions{Headers: []Header{{Name: a + "/link/h.h", Source: `#include "../v.h"`}}}
	},
	"header in memory, with a relative name": func(string) (string, ProgramOptions) {
		return `#include "link/h.h"`, ProgramOptions{Headers: []Header{{Name: "link/h.h", Source: `#include "../v.h"`}}}
	},
	"there and back": func(a string) (string, ProgramOptions) {
		return `#include <link/../inc/../inc/y.h>`, ProgramOptions{IncludePath: []string{a}}
	},
}

// The cache knows of every file that the compiler opens, and sees it change.
func TestFilesThatTheCompilerOpens(t *testing.T) {
	paths := nvrtcPaths(t)
	compiler, err := nvrtc.Open(nvrtc.Options{Paths: paths})
	require.NoError(t, err)
	_, c := openStub(t)
	c.drv.codeKind = PTX
	c.drv.compiler = func() (nvrtc.Compiler, error) { return compiler, nil }
	for linked, link := range links {
		for how, program := range included {
			t.Run(linked+"/"+how, func(t *testing.T) {
				root := t.TempDir()
				v := tree(t, root, link)
				a := filepath.Join(root, "a")
				t.Chdir(a)
				source, o := program(a)
				o.Arch = "compute_75"
				p, err := c.drv.NewProgram(source+"\n#ifndef V\n#error not included\n#endif", CPlusPlus, o)
				require.NoError(t, err)
				job, err := p.prepare(c.dev, PTX)
				require.NoError(t, err)
				files, known := job.files()
				require.True(t, known)
				opened := opened(t, root, func() {
					_, err := job.run()
					require.NoError(t, err)
				})
				require.NotEmpty(t, opened)
				for _, file := range opened {
					require.True(t, knows(t, files, file), "%s, which was opened, is not in %v", file, files.Found)
				}
				require.True(t, files.Unchanged())
				require.NoError(t, os.WriteFile(v, []byte("#define V 7\n"), 0o600))
				require.False(t, files.Unchanged())
			})
		}
	}
}

// tree makes what the programs include, and returns the name of v.h. All files
// have the same effect, so that each program can be compiled.
func tree(t *testing.T, root string, link func(t *testing.T, a, real string)) (v string) {
	t.Helper()
	real := filepath.Join(root, "deep", "real", "inc")
	a := filepath.Join(root, "a")
	require.NoError(t, os.MkdirAll(real, 0o700))
	require.NoError(t, os.MkdirAll(a+"/inc", 0o700))
	for name, text := range map[string]string{
		real + "/y.h": "#pragma once\n#include \"../v.h\"\n", real + "/../v.h": "#define V 1\n",
		a + "/v.h": "#define V 2\n", a + "/inc/y.h": "#include \"../v.h\"\n", root + "/v.h": "#define V 3\n",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	link(t, a, real)
	if linked, err := os.Lstat(a + "/link"); err == nil && linked.IsDir() {
		v, err = filepath.EvalSymlinks(a + "/v.h")
		require.NoError(t, err)
		return v
	}
	return filepath.Join(real, "..", "v.h")
}

func knows(t *testing.T, files codecache.Files, opened string) bool {
	t.Helper()
	want, err := os.Stat(opened)
	require.NoError(t, err)
	for name := range files.Found {
		got, err := os.Stat(name)
		require.NoError(t, err)
		if os.SameFile(want, got) {
			return true
		}
	}
	return false
}

// opened returns the files below root that were opened while a function ran: the
// system tells of the real ones, whatever they were called.
func opened(t *testing.T, root string, run func()) (files []string) {
	t.Helper()
	watch, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Close(watch)) }()
	folders := map[int32]string{}
	require.NoError(t, filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		if d.IsDir() {
			number, err := syscall.InotifyAddWatch(watch, name, syscall.IN_OPEN)
			require.NoError(t, err)
			folders[int32(number)] = name
		}
		return nil
	}))
	run()
	events := make([]byte, 1<<16)
	n, err := syscall.Read(watch, events)
	require.NoError(t, err, "nothing was opened")
	for events = events[:n]; len(events) > 0; {
		folder := folders[int32(binary.NativeEndian.Uint32(events))]
		mask, size := binary.NativeEndian.Uint32(events[4:]), binary.NativeEndian.Uint32(events[12:])
		name := string(bytes.TrimRight(events[syscall.SizeofInotifyEvent:][:size], "\x00"))
		if mask&syscall.IN_ISDIR == 0 && strings.HasSuffix(name, ".h") {
			files = append(files, filepath.Join(folder, name))
		}
		events = events[syscall.SizeofInotifyEvent+size:]
	}
	return files
}
