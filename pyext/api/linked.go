// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"errors"
	"runtime"
	"runtime/debug"
)

// Linked returns what the native module was built with and has in it, as a JSON
// object from names to versions: "go", and the modules of others.
func Linked() (versions string, err error) {
	defer contain(&err)
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("BUG: the native module was built without its build information")
	}
	of := map[string]string{"go": runtime.Version()}
	for _, m := range build.Deps {
		of[m.Path] = m.Version
	}
	text, err := json.Marshal(of)
	return string(text), err
}
