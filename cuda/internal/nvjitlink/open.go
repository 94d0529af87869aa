// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvjitlink

// #include "calls.h"
import "C"

import (
	"fmt"
	"strings"

	"github.com/cudago/cudago/cuda/internal/dl"
)

// PathVariable names the environment variable with directories to look in first,
// separated as in PATH.
const PathVariable = "CUDAGO_NVJITLINK_PATH"

// prefix is that of the libraries' names; the major version follows.
const prefix = "libnvJitLink.so."

// wanted has the libraries that are known to work: one major version is one ABI.
var wanted = dl.Wanted{
	What:     "nvJitLink (libnvJitLink), which links device code,",
	Names:    []string{prefix + "13", prefix + "12"},
	Variable: PathVariable,
	Folders:  []string{"lib64", dl.TargetFolder(), "lib"},
	Extra:    "link",
}

// Options says where to look.
type Options = dl.Search

// Open opens the first nvJitLink that it finds, as [dl.Find] looks.
//
// Errors: [*dl.NotFoundError].
func Open(o Options) (*Library, error) { return dl.Find(wanted, o, bind) }

func bind(library dl.Library, name, file string) (l *Library, why string) {
	names := callNames
	for i, call := range names {
		if i != version { // all others are exported for each minor version, the first of which is of all
			names[i] = fmt.Sprintf("__%s_%s_0", call, strings.TrimPrefix(name, prefix))
		}
	}
	at, why := library.Symbols(names[:])
	if why != "" {
		return nil, why
	}
	l = &Library{path: file}
	for i, a := range at {
		l.fn[i] = C.address(a)
	}
	var a, b C.unsigned
	if C.nvJitLinkVersion(l.fn[version], &a, &b) != 0 {
		return nil, "does not tell its version"
	}
	l.major, l.minor = int(a), int(b)
	if origin := dl.FileOf(at[version]); origin != "" {
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
