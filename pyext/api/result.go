// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"maps"
	"slices"

	"github.com/cudago/cudago/cuda"
)

var resultCodes = slices.Sorted(maps.Keys(cuda.Results()))

// ResultCount returns how many result codes this version knows.
func ResultCount() int { return len(resultCodes) }

// ResultCode returns the i-th code, in rising order; -1 outside 0 to
// ResultCount-1.
func ResultCode(i int) int {
	if i < 0 || i >= len(resultCodes) {
		return -1
	}
	return int(resultCodes[i])
}

// ResultName returns a code's name in cuda.h: "CUDA_ERROR_OUT_OF_MEMORY".
func ResultName(code int) string { return cuda.Result(code).Name() }

// ResultExplanation says in a few words what a code means. It is empty for a
// code that this version does not know.
func ResultExplanation(code int) string { return cuda.Result(code).Explanation() }
