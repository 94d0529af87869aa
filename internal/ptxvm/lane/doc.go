// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package lane runs decoded instructions over the lanes of a warp. It chooses
// the function of each instruction, places its operands, and holds the functions:
// small loops over lanes, most of them generated (see gen). It knows nothing of
// control flow. A function that cannot go on panics with a *Stop.
//
// The race detector does not see lanes touch device memory (go:norace): races
// between simulated threads are the simulated program's, not ours.
package lane
