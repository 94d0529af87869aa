// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

// Package thin says how many of their numbers the tests of the simulated device
// try.
package thin

// OneIn: beside the race detector one number in so many is tried: each takes up
// to forty times as long there, and a race of an instruction, which a few
// numbers show, is no more likely with all of them. make test has all, without
// it. It is a prime, so that every low bit is met.
const OneIn = 31
