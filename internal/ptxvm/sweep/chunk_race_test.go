// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package sweep

// sweepChunk is less than without the detector, which has each input take longer.
const sweepChunk = 1 << 10
