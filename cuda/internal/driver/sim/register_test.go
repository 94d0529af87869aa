// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMappedMemory(t *testing.T) {
	const maps = `1000-2000 rw-p 00000000 00:00 0
2000-3000 r--p 00000000 08:01 17    /usr/lib/a library.so
3000-4000 rw-s 00000000 00:05 3
5000-6000 ---p 00000000 00:00 0
6000-7000 rw-p 00000000 00:00 0    [heap]
`
	tests := []struct {
		name             string
		base, end        uint64
		readable, writes bool
	}{
		{"inside one mapping", 0x1100, 0x1200, true, true},
		{"a whole mapping", 0x6000, 0x7000, true, true},
		{"over two mappings, of which one is read-only", 0x1ff0, 0x2010, true, false},
		{"over three mappings", 0x1000, 0x4000, true, false},
		{"shared memory", 0x3000, 0x3001, true, true},
		{"into a hole", 0x3ff0, 0x4010, false, false},
		{"in a hole", 0x4100, 0x4200, false, false},
		{"without access", 0x5000, 0x5010, false, false},
		{"behind everything", 0x6ff0, 0x7001, false, false},
		{"before everything", 0xff0, 0x1010, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.readable, mappedIn(strings.NewReader(maps), tt.base, tt.end, false))
			require.Equal(t, tt.writes, mappedIn(strings.NewReader(maps), tt.base, tt.end, true))
		})
	}
}
