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

// sonames are the libraries that are known to work, newest first: one major
// version is one ABI.
var sonames = []string{"libnvrtc.so.13", "libnvrtc.so.12"}

// Options says where to look.
type Options = dl.Search

// Attempt is one place where NVRTC was looked for in vain.
type Attempt struct {
	Place string // directory or library
	Why   string
}

// NotFoundError says that no NVRTC could be opened.
type NotFoundError struct {
	Tried  []Attempt
	Advice string
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	b.WriteString("NVRTC (libnvrtc), which compiles CUDA C++, was not found; " + e.Advice + "; looked in")
	for _, a := range e.Tried {
		b.WriteString("\n  " + a.Place + ": " + a.Why)
	}
	return b.String()
}

// Open opens the first NVRTC that it finds: in CUDAGO_NVRTC_PATH, in o.Paths,
// by the loader's own search, then in the toolkits that CUDA_HOME and
// CUDA_PATH name and in /usr/local/cuda.
//
// Errors: [*NotFoundError].
func Open(o Options) (*Library, error) {
	var tried []Attempt
	for _, dir := range o.First(PathVariable) {
		if l := openIn(dir, &tried); l != nil {
			return l, nil
		}
	}
	for _, name := range sonames {
		if l := openFile(name, &tried); l != nil {
			return l, nil
		}
	}
	for _, dir := range dl.InToolkits("lib64", dl.TargetFolder(), "lib") {
		if l := openIn(dir, &tried); l != nil {
			return l, nil
		}
	}
	return nil, &NotFoundError{tried, o.Advice("sim", PathVariable)}
}

// openIn opens NVRTC in one directory.
func openIn(dir string, tried *[]Attempt) *Library {
	found := false
	for _, name := range sonames {
		file := pathname.Join(dir, name)
		if _, err := os.Stat(file); err != nil {
			continue
		}
		found = true
		if l := openFile(file, tried); l != nil {
			return l
		}
	}
	if !found {
		why := "has none of " + strings.Join(sonames, ", ")
		if _, err := os.Stat(dir); err != nil {
			why = "no such directory"
		}
		*tried = append(*tried, Attempt{dir, why})
	}
	return nil
}

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

func openFile(file string, tried *[]Attempt) *Library {
	library, why := dl.Open(file)
	if !library.IsOpen() {
		*tried = append(*tried, Attempt{file, why})
		return nil
	}
	l := &Library{path: file}
	for i, name := range callNames {
		l.fn[i] = C.address(library.Symbol(name))
		if l.fn[i] == 0 {
			*tried = append(*tried, Attempt{file, "lacks " + name})
			return nil
		}
	}
	if !l.query() {
		*tried = append(*tried, Attempt{file, "does not tell its version and architectures"})
		return nil
	}
	if origin := dl.FileOf(uintptr(l.fn[nvrtcVersion])); origin != "" {
		l.path = origin
		openBuiltins(pathname.Folder(l.path))
	}
	l.identity = identify(l)
	return l
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
