// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"fmt"
	"syscall"
)

// systemError is what the operating system refused for a call: what it is short of,
// or does not have.
func systemError(op, what string, err error) *Error {
	result := ErrorOperatingSystem
	switch {
	case errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.ENOSPC):
		result = ErrorOutOfMemory
	case errors.Is(err, syscall.ENOSYS):
		result = ErrorNotSupported
	}
	return &Error{Op: op, Result: result, Detail: fmt.Sprintf("%s: %v", what, err)}
}
