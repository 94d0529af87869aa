// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package pathname joins and divides the names of files as the system reads them.
//
// Package path/filepath works on text: it makes v.h of link/../v.h, where the system
// opens a file beside the folder that the link leads to, and it takes the ./ away without
// which the loader searches its own places. So the names of files that this process or
// a compiler opens are made here. internal/layout sees to it.
package pathname

import (
	"strings"
	"syscall"
)

// Join returns the name of what is called name in a folder. An empty folder is the
// current one.
func Join(folder, name string) string {
	switch {
	case folder == "":
		folder = "./"
	case !strings.HasSuffix(folder, "/"):
		folder += "/"
	}
	return folder + name
}

// Folder returns the folder that a file is in: all that comes before its last name.
func Folder(file string) string {
	switch at := strings.LastIndexByte(file, '/'); at {
	case -1:
		return "."
	case 0:
		return "/"
	default:
		return file[:at]
	}
}

// IsAbsolute reports whether a name means the same in every folder.
func IsAbsolute(name string) bool { return strings.HasPrefix(name, "/") }

// In returns a name as seen from a folder.
func In(folder, name string) string {
	if IsAbsolute(name) {
		return name
	}
	return Join(folder, name)
}

// Current returns the current folder by its own name, as compilers do. $PWD may have
// one with links, which come to lead elsewhere; that is what package os returns.
func Current() (string, error) { return syscall.Getwd() }

// Absolute returns a name that goes on to mean the same when the current folder
// changes; the same name where there is no such folder.
func Absolute(name string) string {
	folder, err := Current()
	if err != nil {
		return name
	}
	return In(folder, name)
}
