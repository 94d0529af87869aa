// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvrtc

// #include "calls.h"
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/cudago/cudago/cuda/internal/dl"
)

// PathVariable names the environment variable with directories to look in
// first, separated as in PATH.
const PathVariable = "CUDAGO_NVRTC_PATH"

// sonames are the libraries that are known to work, newest first: one major
// version is one ABI.
var sonames = []string{"libnvrtc.so.13", "libnvrtc.so.12"}

// Options says where to look. The zero value is the system's own places.
type Options struct {
	// Paths are directories that hold libnvrtc, such as a wheel's
	// site-packages/nvidia/cu13/lib. They come before the system's.
	Paths []string
}

// Attempt is one place where NVRTC was looked for in vain.
type Attempt struct {
	Place string // directory or library
	Why   string
}

// NotFoundError says that no NVRTC could be opened.
type NotFoundError struct {
	Tried []Attempt
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	b.WriteString("NVRTC (libnvrtc), which compiles CUDA C++, was not found; " +
		"`pip install cudago[sim]` brings it along; looked in")
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
	dirs := append(filepath.SplitList(os.Getenv(PathVariable)), o.Paths...)
	var tried []Attempt
	for _, dir := range dirs {
		if l := openIn(dir, &tried); l != nil {
			return l, nil
		}
	}
	for _, name := range sonames {
		if l := openFile(name, &tried); l != nil {
			return l, nil
		}
	}
	for _, dir := range toolkitDirs() {
		if l := openIn(dir, &tried); l != nil {
			return l, nil
		}
	}
	return nil, &NotFoundError{tried}
}

// toolkitDirs are the library directories of installed CUDA toolkits.
func toolkitDirs() []string {
	target := map[string]string{"amd64": "x86_64-linux", "arm64": "sbsa-linux"}[runtime.GOARCH]
	var dirs []string
	for _, home := range []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda"} {
		if home == "" {
			continue
		}
		for _, dir := range []string{
			filepath.Join(home, "lib64"),
			filepath.Join(home, "targets", target, "lib"),
			filepath.Join(home, "lib"),
		} {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// openIn opens NVRTC in one directory.
func openIn(dir string, tried *[]Attempt) *Library {
	found := false
	for _, name := range sonames {
		file := filepath.Join(dir, name)
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
	files, _ := filepath.Glob(filepath.Join(dir, "libnvrtc-builtins.so.*"))
	for _, file := range files {
		dl.Open(file)
	}
}

// identify tells NVRTCs apart, which tell their version, but not their build.
func identify(l *Library) string {
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(l.path), "libnvrtc-builtins.so.*"))
	return fmt.Sprintf("NVRTC %d.%d", l.major, l.minor) + dl.Describe(append(files, l.path)...)
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
		openBuiltins(filepath.Dir(l.path))
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
