// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package sweep

// sweepChunk is how many inputs one launch of a sweep takes: a multiple of what
// a block does, and little enough to stay in a core's cache.
const sweepChunk = 1 << 15
