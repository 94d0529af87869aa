// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Package thin says what share of their numbers the tests of the simulated
// device try.
package thin

// OneIn is 1: every number of a test is tried.
const OneIn = 1
