// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build !pyext

// Command pyext is Python's extension module cudago._core. Without the build
// tag "pyext" it is this empty program, so that go build ./... and go vet ./...
// need no Python headers.
package main

func main() {}
