// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvjitlink

// #include "calls.h"
import "C"

import (
	"fmt"
	"os"
	"strings"

	"github.com/cudago/cudago/cuda/internal/dl"
	"github.com/cudago/cudago/internal/pathname"
)

// PathVariable names the environment variable with directories to look in first,
// separated as in PATH.
const PathVariable = "CUDAGO_NVJITLINK_PATH"

// majors are the versions that are known to work, newest first: one major version
// is one ABI.
var majors = []int{13, 12}

func soname(major int) string { return fmt.Sprintf("libnvJitLink.so.%d", major) }

// NotFoundError says that no nvJitLink could be opened.
type NotFoundError struct {
	Tried  []string // a place, and why it will not do
	Advice string
}

func (e *NotFoundError) Error() string {
	return "nvJitLink (libnvJitLink), which links device code, was not found; " + e.Advice + "; looked in\n  " +
		strings.Join(e.Tried, "\n  ")
}

// Options says where to look.
type Options = dl.Search

// Open opens the first nvJitLink that it finds: in CUDAGO_NVJITLINK_PATH, in
// o.Paths, by the loader's own search, then in the toolkits that CUDA_HOME and
// CUDA_PATH name and in /usr/local/cuda.
//
// Errors: [*NotFoundError].
func Open(o Options) (*Library, error) {
	dirs := append(o.First(PathVariable), "") // the loader's own search
	dirs = append(dirs, dl.InToolkits("lib64", dl.TargetFolder(), "lib")...)
	var tried []string
	for _, dir := range dirs {
		for _, major := range majors {
			file := soname(major)
			if dir != "" {
				file = pathname.Join(dir, file)
				if _, err := os.Stat(file); err != nil {
					tried = append(tried, file+": no such file")
					continue
				}
			}
			l, why := openFile(file, major)
			if l != nil {
				return l, nil
			}
			tried = append(tried, file+": "+why)
		}
	}
	return nil, &NotFoundError{tried, o.Advice("link", PathVariable)}
}

func openFile(file string, major int) (l *Library, why string) {
	library, why := dl.Open(file)
	if !library.IsOpen() {
		return nil, why
	}
	l = &Library{path: file}
	for i, name := range callNames {
		if i != version { // all others are exported for each minor version, the first of which is of all
			name = fmt.Sprintf("__%s_%d_0", name, major)
		}
		l.fn[i] = C.address(library.Symbol(name))
		if l.fn[i] == 0 {
			return nil, "lacks " + name
		}
	}
	var a, b C.unsigned
	if C.nvJitLinkVersion(l.fn[version], &a, &b) != 0 {
		return nil, "does not tell its version"
	}
	l.major, l.minor = int(a), int(b)
	if origin := dl.FileOf(uintptr(l.fn[version])); origin != "" {
		l.path = origin
	}
	l.identity = fmt.Sprintf("nvJitLink %d.%d", l.major, l.minor) + dl.Describe(l.path)
	return l, ""
}

// The calls, as indices into callNames and Library.fn.
const (
	version = iota
	create
	destroy
	addData
	complete
	cubinSize
	cubin
	ptxSize
	ptx
	errorLogSize
	errorLog
	infoLogSize
	infoLog

	callCount
)

var callNames = [callCount]string{
	version:      "nvJitLinkVersion",
	create:       "nvJitLinkCreate",
	destroy:      "nvJitLinkDestroy",
	addData:      "nvJitLinkAddData",
	complete:     "nvJitLinkComplete",
	cubinSize:    "nvJitLinkGetLinkedCubinSize",
	cubin:        "nvJitLinkGetLinkedCubin",
	ptxSize:      "nvJitLinkGetLinkedPtxSize",
	ptx:          "nvJitLinkGetLinkedPtx",
	errorLogSize: "nvJitLinkGetErrorLogSize",
	errorLog:     "nvJitLinkGetErrorLog",
	infoLogSize:  "nvJitLinkGetInfoLogSize",
	infoLog:      "nvJitLinkGetInfoLog",
}
