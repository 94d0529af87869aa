// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// The build tag hides this file from gopy, which would bind Source and Use.

//go:build pyext

package api

// A Source is where the package gets what it tells. All of it must be safe for
// concurrent use, without the GIL.
type Source = source

// Use installs the source. Package native calls it from an init function, so
// before any call from Python.
func Use(s Source) { from = s }
