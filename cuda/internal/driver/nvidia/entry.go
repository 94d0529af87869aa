// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

// entry is one driver call: what cuGetProcAddress is asked for. The list of
// them, in zentry.go, is generated.
//
// version is the CUDA version that introduced the signature in zcalls.h or
// calls.h; a newer one would be another signature (cuEventElapsedTime at 12080
// is). suffix is what the exported name of that signature ends in, for a driver
// library without cuGetProcAddress. Without an optional one the rest is still
// of use.
type entry struct {
	name     string
	version  int
	suffix   string
	required bool
}

const (
	required = true
	optional = false
)
