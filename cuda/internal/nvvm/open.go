// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvvm

// #include "calls.h"
import "C"

import (
	"fmt"
	"os"

	"github.com/cudago/cudago/cuda/internal/dl"
	"github.com/cudago/cudago/internal/pathname"
)

// PathVariable names the environment variable with directories to look in first,
// separated as in PATH.
const PathVariable = "CUDAGO_NVVM_PATH"

// wanted has the files' names: that of CUDA 12 and 13, whose ABI is one, and the only
// one that NVIDIA's wheel for CUDA 12 has.
var wanted = dl.Wanted{
	What:     "NVVM (libnvvm), which compiles NVVM IR,",
	Names:    []string{"libnvvm.so.4", "libnvvm.so"},
	Variable: PathVariable,
	Folders:  []string{"nvvm/lib64"},
	Extra:    "nvvm",
}

// LibdeviceError says that there is no libdevice, or that it cannot be read.
type LibdeviceError struct {
	Library string // libnvvm's file
	Why     string
	Advice  string
}

func (e *LibdeviceError) Error() string {
	return "libdevice.10.bc, which has the functions called __nv_*, was not found: " + e.Why + "; " + e.Advice +
		", with libnvvm (here " + e.Library + ")"
}

// Options says where to look.
type Options = dl.Search

// Open opens the first libnvvm that it finds, as [dl.Find] looks.
//
// Errors: [*dl.NotFoundError].
func Open(o Options) (*Library, error) {
	l, err := dl.Find(wanted, o, bind)
	if err == nil {
		l.advice = o.Advice(wanted.Extra, PathVariable)
	}
	return l, err
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
	var major, minor C.int
	if C.nvvmVersion(l.fn[version], &major, &minor) != 0 {
		return nil, "does not tell its version"
	}
	if origin := dl.FileOf(at[version]); origin != "" {
		l.path = origin
	}
	l.libdevice = libdeviceOf(l.path)
	// The version is that of the IR, 2.0 for all of CUDA 12 and 13: only the files
	// tell compilers apart.
	l.identity = fmt.Sprintf("NVVM %d.%d", int(major), int(minor)) + dl.Describe(l.path, l.libdevice)
	return l, ""
}

// libdevicePlaces are where libdevice is, as seen from libnvvm's folder: in
// NVIDIA's wheel for CUDA 13, then in that for CUDA 12 and in toolkits.
var libdevicePlaces = []string{"../nvvm/libdevice", "../libdevice"}

// libdeviceOf finds the libdevice that belongs to a library, else any.
func libdeviceOf(library string) string {
	var dirs []string
	for _, place := range libdevicePlaces {
		dirs = append(dirs, pathname.Join(pathname.Folder(library), place))
	}
	dirs = append(dirs, dl.InToolkits("nvvm/libdevice")...)
	dirs = append(dirs, "/usr/lib/nvidia-cuda-toolkit/libdevice") // Debian's
	for _, dir := range dirs {
		file := pathname.Join(dir, "libdevice.10.bc")
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

// Libdevice implements [Compiler].
func (l *Library) Libdevice() ([]byte, error) {
	if l.libdevice == "" {
		return nil, &LibdeviceError{l.path, "there is none beside libnvvm or in a toolkit", l.advice}
	}
	data, err := os.ReadFile(l.libdevice)
	if err != nil {
		return nil, &LibdeviceError{l.path, err.Error(), l.advice}
	}
	return data, nil
}

// The calls, as indices into callNames and Library.fn.
const (
	version = iota
	createProgram
	destroyProgram
	addModule
	lazyAddModule
	verifyProgram
	compileProgram
	resultSize
	result
	logSize
	log

	callCount
)

var callNames = [callCount]string{
	version:        "nvvmVersion",
	createProgram:  "nvvmCreateProgram",
	destroyProgram: "nvvmDestroyProgram",
	addModule:      "nvvmAddModuleToProgram",
	lazyAddModule:  "nvvmLazyAddModuleToProgram",
	verifyProgram:  "nvvmVerifyProgram",
	compileProgram: "nvvmCompileProgram",
	resultSize:     "nvvmGetCompiledResultSize",
	result:         "nvvmGetCompiledResult",
	logSize:        "nvvmGetProgramLogSize",
	log:            "nvvmGetProgramLog",
}
