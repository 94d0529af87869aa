// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package api

import "github.com/cudago/cudago/cuda"

// ResultName returns a code's name in cuda.h: "CUDA_ERROR_OUT_OF_MEMORY".
func ResultName(code int) string { return cuda.Result(code).Name() }

// ResultExplanation says in a few words what a code means. It is empty for a
// code that this version does not know.
func ResultExplanation(code int) string { return cuda.Result(code).Explanation() }
