// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

// Package thin says what share of their numbers the tests of the simulated
// device try.
package thin

// OneIn says that one number in 31 is tried under the race detector. There a number
// takes up to forty times as long, and a few numbers show a race as well as all do.
// make test also tries all of them, without the detector. 31 is prime, so every
// pattern of low bits occurs.
const OneIn = 31
