// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package dl

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/cudago/cudago/internal/pathname"
)

// Search says where to look for a library. The zero value is the system's own
// places.
type Search struct {
	// Paths are folders, such as a wheel's site-packages/nvidia/cu13/lib. They come
	// before the system's.
	Paths []string
	// IsFrozen says that the program was frozen: it has what was put into it, and
	// nothing can be installed.
	IsFrozen bool
}

// First returns the folders to look in before the loader's own: those that the
// environment variable names, separated as in PATH, then s.Paths. A part that is empty
// names none: the loader's search is not the user's choice.
func (s Search) First(variable string) []string {
	return absolute(append(filepath.SplitList(os.Getenv(variable)), s.Paths...))
}

// toolkits are where CUDA toolkits may be installed.
func toolkits() []string {
	return absolute([]string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda"})
}

// InToolkits returns folders of the CUDA toolkits that CUDA_HOME and CUDA_PATH name and
// of /usr/local/cuda, to look in after the loader's own.
func InToolkits(folders ...string) []string {
	var all []string
	for _, home := range toolkits() {
		for _, folder := range folders {
			all = append(all, pathname.Join(home, folder))
		}
	}
	return all
}

// absolute returns the folders that are named, each once. The loader would search for a
// library in the current one, called by its name alone.
func absolute(folders []string) []string {
	var named []string
	for _, folder := range folders {
		if folder == "" {
			continue
		}
		if folder = pathname.Absolute(folder); !slices.Contains(named, folder) {
			named = append(named, folder)
		}
	}
	return named
}

// TargetFolder is that of a toolkit, or of Conda's environment, for this machine.
func TargetFolder() string {
	return map[string]string{"amd64": "targets/x86_64-linux/lib", "arm64": "targets/sbsa-linux/lib"}[runtime.GOARCH]
}

// Advice says how to get a library that extra brings along, or whose folder the
// environment variable names.
func (s Search) Advice(extra, variable string) string {
	if s.IsFrozen {
		return "this program is frozen, and was frozen without it: with `pip install cudago[" + extra + "]` before that, PyInstaller " +
			"takes it along; or " + variable + " names its folder"
	}
	return "`pip install cudago[" + extra + "]` brings it along"
}
