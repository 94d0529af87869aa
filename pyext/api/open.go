// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/cudago/cudago/cuda"
)

// A source is where the package gets what it tells. gopy would bind an exported
// type: Use and its name for this one are where gopy does not look.
type source struct {
	// Open returns the process's driver. It may block, because gopy gives the GIL
	// away around every call.
	Open func() (*cuda.Driver, error)
	// Encode makes of an error the text that Python decodes.
	Encode func(error) string
	// LiveObjects counts what is held open for Python, by kind.
	LiveObjects func() map[string]int
	// LiveStreams counts the streams that may have work.
	LiveStreams func() int
}

// Set once by Use, before Python can call anything here. All of it is safe for
// concurrent use, without the GIL.
var from = source{
	Open: func() (*cuda.Driver, error) {
		return nil, errors.New("BUG: package api is used before native called api.Use")
	},
	Encode: error.Error,
}

// contain is deferred by every function that could panic or fail. It turns a
// panic into an error, and the error into the text that Python decodes.
func contain(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
	if *err != nil {
		*err = errors.New(from.Encode(*err))
	}
}

// device opens the driver if nobody did, and returns one of its devices.
func device(ordinal int) (*cuda.Device, error) {
	d, err := from.Open()
	if err != nil {
		return nil, err
	}
	return d.Device(ordinal)
}
