// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"fmt"
	"math/bits"
	"strings"
)

// Ranges writes a mask as "0-3,7".
func Ranges(mask uint32) string {
	var parts []string
	for mask != 0 {
		first := bits.TrailingZeros32(mask)
		n := bits.TrailingZeros32(^(mask >> first))
		if n == 1 {
			parts = append(parts, fmt.Sprint(first))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", first, first+n-1))
		}
		mask &^= uint32(uint64(1)<<(first+n) - 1)
	}
	if len(parts) == 0 {
		return "that have exited"
	}
	return strings.Join(parts, ",")
}
