// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package ptxvm

// Every number of a test is tried.
const (
	oneIn = 1
	// sweepChunk is how many inputs one launch of a sweep takes: a multiple of
	// what a block does, and little enough to stay in a core's cache.
	sweepChunk = 1 << 15
)
