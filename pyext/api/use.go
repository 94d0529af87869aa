// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// The build tag hides this file from gopy, which would bind Use.

//go:build pyext

package api

import "github.com/cudago/cudago/cuda"

// Use says where the package gets the process's driver, and how an error
// becomes the text that Python decodes. Package native calls it from an init
// function, so before any call from Python. Both must be safe for concurrent
// use; open may block, because gopy gives the GIL away around every call.
func Use(open func() (*cuda.Driver, error), encode func(error) string) {
	openDriver, encodeError = open, encode
}
