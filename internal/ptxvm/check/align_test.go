// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm/check"
)

func TestBarriersOfAPartOfAWarp(t *testing.T) {
	tests := []struct {
		name, body string
		want       string // empty: nothing
	}{
		{"half of a warp goes around it", `
	setp.ge.u32 %c, %t, 48;
	@%c bra After;
	bar.sync 0;
After:
	st.global.u32 [%x], %t;`,
			`barrier without all of a warp in kernel k, block (0,0,0), thread (32,0,0) (PTX line 22: bar.sync 0): ` +
				`lanes 0-15 of warp 1 reached it, lanes 16-31 did not; 2 times`},
		{"a guard", `
	setp.lt.u32 %c, %t, 8;
	mov.u32 %v, 72; @%c bar.arrive 1, %v;
	bar.sync 1, %v;`,
			`barrier without all of a warp in kernel k, block (0,0,0), thread (0,0,0) (PTX line 21: bar.arrive 1, %v): ` +
				`lanes 0-7 of warp 0 reached it, lanes 8-31 did not; 2 times`},
		{"an early return", `
	setp.ge.u32 %c, %t, 48;
	@%c bra Done;
	st.global.u32 [%x], %t;
	bar.sync 0;
Done:`, ``},
		{"an exit", `
	setp.ge.u32 %c, %t, 48;
	@%c exit;
	bar.sync 0;
	st.global.u32 [%x], %t;`, ``},
		{"whole warps", `
	setp.ge.u32 %c, %t, 32;
	@%c bra After;
	bar.sync 1, 32;
After:
	bar.sync 0;`, ``},
		{"one that may be divergent", `
	setp.ge.u32 %c, %t, 48;
	@%c bra After;
	mov.u32 %v, 48; barrier.sync 1, %v;
After:
	barrier.sync 0;`, ``},
		{"both ways to the same one", `
	and.b32 %v, %t, 1;
	setp.ne.u32 %c, %v, 0;
	@%c bra Odd;
	st.global.u32 [%x], %t;
	bra Both;
Odd:
	st.global.u32 [%x], 7;
Both:
	bar.sync 0;`, ``},
	}
	for _, tt := range tests {
		found := checked(t, 7, check.Races, tt.body, 2, 64)
		if tt.want == "" {
			require.Empty(t, found, tt.name)
			continue
		}
		// Either block may be the first.
		found[0] = strings.Replace(found[0], "block (1,0,0)", "block (0,0,0)", 1)
		require.Equal(t, []string{tt.want}, found, tt.name)
	}
}
