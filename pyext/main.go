// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

// Command pyext is Python's extension module cudago._core, built with
// -buildmode=c-shared. The module's own code is in the rooms, of which package
// module is the root; what gopy generates for the cold API is beside this file.
package main

import (
	// Its C files hold PyInit__core, the one symbol that the module exports.
	_ "github.com/cudago/cudago/pyext/module"
)

func main() {}
