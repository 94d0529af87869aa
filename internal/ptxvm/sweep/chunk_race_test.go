// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package sweep

// sweepChunk is smaller than without the race detector, under which each input
// takes longer.
const sweepChunk = 1 << 10
