// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

// Base has a method for every driver call, which does nothing and returns zero
// values. A driver embeds it and overrides the calls that it implements. The
// methods are generated from API.
type Base struct {
	// Answer gets the call's name, such as "cuMemAdvise", and returns its result.
	// Without it that is CUDA_ERROR_NOT_SUPPORTED.
	Answer func(call string) CUresult
}

func (b *Base) answer(call string) CUresult {
	if b.Answer == nil {
		return CUDA_ERROR_NOT_SUPPORTED
	}
	return b.Answer(call)
}
