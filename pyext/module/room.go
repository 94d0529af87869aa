// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

// Package module is the root of the border to Python: it builds _core from the
// rooms, and shuts them down.
//
// PyInit__core is the only symbol that the library exports. The half that gopy
// makes of package api, _gobind, is in the same library: module.c finds it through
// a weak reference and makes it an attribute of _core, and python/cudago/_gopy
// registers it under the name that gopy's Python code imports.
package module

/*
#cgo CFLAGS: -I${SRCDIR}/../include -I${SRCDIR}/.. -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Wno-cast-function-type -Wno-missing-field-initializers
*/
import "C"

import (
	// Their C files make up the rest of _core.
	_ "github.com/cudago/cudago/dlpack"
	_ "github.com/cudago/cudago/pyext/graph"
	_ "github.com/cudago/cudago/pyext/tensor"
	_ "github.com/cudago/cudago/pyext/xla"
)
