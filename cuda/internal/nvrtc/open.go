// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvrtc

// #include "calls.h"
import "C"

import (
	"fmt"
	"os"
	"strings"

	"github.com/cudago/cudago/cuda/internal/dl"
	"github.com/cudago/cudago/internal/pathname"
)

// PathVariable names the environment variable with directories to look in
// first, separated as in PATH.
const PathVariable = "CUDAGO_NVRTC_PATH"

// wanted has the libraries that are known to work: one major version is one ABI.
var wanted = dl.Wanted{
	What:     "NVRTC (libnvrtc), which compiles CUDA C++,",
	Names:    []string{"libnvrtc.so.13", "libnvrtc.so.12"},
	Variable: PathVariable,
	Folders:  []string{"lib64", dl.TargetFolder(), "lib"},
	Extra:    "sim",
	ByFolder: true,
}

// Options says where to look.
type Options = dl.Search

// Open opens the first NVRTC that it finds, as [dl.Find] looks.
//
// Errors: [*dl.NotFoundError].
func Open(o Options) (*Library, error) { return dl.Find(wanted, o, bind) }

// openBuiltins opens the library that libnvrtc opens by bare name when it
// compiles. Outside the loader's path, as in a wheel, it would not be found
// ("failed to open libnvrtc-builtins.so.13.0"); one that is loaded already is.
// A failure shows when something is compiled.
func openBuiltins(dir string) {
	for _, file := range builtins(dir) {
		dl.Open(file)
	}
}

func builtins(dir string) (files []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "libnvrtc-builtins.so.") {
			files = append(files, pathname.Join(dir, e.Name()))
		}
	}
	return files
}

// identify tells NVRTCs apart, which tell their version, but not their build.
func identify(l *Library) string {
	files := append(builtins(pathname.Folder(l.path)), l.path)
	return fmt.Sprintf("NVRTC %d.%d", l.major, l.minor) + dl.Describe(files...)
}

func bind(library dl.Library, _, file string) (l *Library, why string) {
	at, why := library.Symbols(callNames[:])
	if why != "" {
		return nil, why
	}
	l = &Library{path: file}
	for i, a := range at {
		l.fn[i] = C.address(a)
	}
	if !l.query() {
		return nil, "does not tell its version and architectures"
	}
	if origin := dl.FileOf(at[nvrtcVersion]); origin != "" {
		l.path = origin
		openBuiltins(pathname.Folder(l.path))
	}
	l.identity = identify(l)
	return l, ""
}

// The NVRTC calls, as indices into callNames and Library.fn.
const (
	nvrtcVersion = iota
	nvrtcGetNumSupportedArchs
	nvrtcGetSupportedArchs
	nvrtcCreateProgram
	nvrtcDestroyProgram
	nvrtcAddNameExpression
	nvrtcCompileProgram
	nvrtcGetLoweredName
	nvrtcGetProgramLogSize
	nvrtcGetProgramLog
	nvrtcGetPTXSize
	nvrtcGetPTX
	nvrtcGetCUBINSize
	nvrtcGetCUBIN
	nvrtcGetLTOIRSize
	nvrtcGetLTOIR

	callCount
)

var callNames = [callCount]string{
	nvrtcVersion:              "nvrtcVersion",
	nvrtcGetNumSupportedArchs: "nvrtcGetNumSupportedArchs",
	nvrtcGetSupportedArchs:    "nvrtcGetSupportedArchs",
	nvrtcCreateProgram:        "nvrtcCreateProgram",
	nvrtcDestroyProgram:       "nvrtcDestroyProgram",
	nvrtcAddNameExpression:    "nvrtcAddNameExpression",
	nvrtcCompileProgram:       "nvrtcCompileProgram",
	nvrtcGetLoweredName:       "nvrtcGetLoweredName",
	nvrtcGetProgramLogSize:    "nvrtcGetProgramLogSize",
	nvrtcGetProgramLog:        "nvrtcGetProgramLog",
	nvrtcGetPTXSize:           "nvrtcGetPTXSize",
	nvrtcGetPTX:               "nvrtcGetPTX",
	nvrtcGetCUBINSize:         "nvrtcGetCUBINSize",
	nvrtcGetCUBIN:             "nvrtcGetCUBIN",
	nvrtcGetLTOIRSize:         "nvrtcGetLTOIRSize",
	nvrtcGetLTOIR:             "nvrtcGetLTOIR",
}
