// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext && !asan

package border

// NeedsGIL stands at the head of what is correct only with the GIL. Builds under
// AddressSanitizer check it, and end the process where it is not held; others
// have nothing to ask: the stable ABI of Python 3.11 does not say.
func NeedsGIL() {}
