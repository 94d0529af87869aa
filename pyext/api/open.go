// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/cudago/cudago/cuda"
)

// Set once by Use, before Python can call anything here.
var (
	openDriver = func() (*cuda.Driver, error) {
		return nil, errors.New("BUG: package api is used before native called api.Use")
	}
	encodeError = error.Error
)

// contain is deferred by every function that could panic or fail. It turns a
// panic into an error, and the error into the text that Python decodes.
func contain(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
	if *err != nil {
		*err = errors.New(encodeError(*err))
	}
}

// device opens the driver if nobody did, and returns one of its devices.
func device(ordinal int) (*cuda.Device, error) {
	d, err := openDriver()
	if err != nil {
		return nil, err
	}
	return d.Device(ordinal)
}
