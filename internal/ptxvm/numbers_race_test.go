// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package ptxvm

// Beside the race detector one number in so many is tried: each takes up to
// forty times as long there, and a race of an instruction, which a few numbers
// show, is no more likely with all of them. make test has all, without it.
const (
	oneIn      = 31 // a prime, so that every low bit is met
	sweepChunk = 1 << 10
)
