// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// sharedReads are kernels of 2 blocks of 64 threads that read shared memory.
var sharedReads = []struct {
	name, body string
	want       string // a regular expression; empty: nothing
}{
	{"nobody wrote", `
	ld.shared.u32 %v, [%s];
	st.global.u32 [%x], %v;`,
		`^uninitialized read in shared memory of kernel k, block \(\d,0,0\), thread \(\d+,0,0\) \(PTX line 20: ld\.shared\.u32 %v, \[%s\]\): ` +
			`4 bytes at offset \d+ were never written by this block; at offset \d+ of shared variable m of 1024 bytes; 128 times$`},
	{"everybody wrote", `
	st.shared.u32 [%s], %t;
	bar.sync 0;
	ld.shared.u32 %v, [%s];`, ``},
	{"one thread did not", `
	setp.ne.u32 %c, %t, 37;
	@%c st.shared.u32 [%s], %t;
	bar.sync 0;
	ld.shared.u32 %v, [%s];`, `thread \(37,0,0\) .* 4 bytes at offset 148 were .*; 2 times$`},
	{"two bytes of four", `
	st.shared.u16 [%s+2], %t;
	ld.shared.u32 %v, [%s];`, `: 2 bytes at offset \d*[02468] were never written`},
	{"only the first block wrote", `
	setp.eq.u32 %c, %b, 0;
	@%c st.shared.u32 [%s], %t;
	ld.shared.u32 %v, [%s];`, `^uninitialized read .*, block \(1,0,0\), .*; 64 times$`},
	{"a later block would be in time", `
	setp.eq.u32 %c, %b, 1;
	@%c st.shared.u32 [%s], %t;
	ld.shared.u32 %v, [%s];`, `^uninitialized read .*, block \(0,0,0\), .*; 64 times$`},
	{"generic address", `
	cvt.u64.u32 %y, %s;
	cvta.shared.u64 %y, %y;
	ld.u32 %v, [%y];`, `ld\.u32 %v, \[%y\]\): 4 bytes at offset \d+ were never written by this block; at offset`},
	{"generic store", `
	cvt.u64.u32 %y, %s;
	cvta.shared.u64 %y, %y;
	st.u32 [%y], %t;
	ld.shared.u32 %v, [%s];`, ``},
	{"generic address of global memory", `
	ld.u32 %v, [%x];`, ``},
	{"dynamic", `
	add.u32 %s, %s, 1024;
	ld.shared.u32 %v, [%s];`, `thread \(\d+,0,0\) .*: 4 bytes at offset 1\d\d\d were .* by this block; at offset \d+ of dynamic shared memory; 128 times$`},
	{"dynamic, written", `
	st.shared.u32 [%s+1024], %t;
	ld.shared.u32 %v, [%s+1024];`, ``},
	{"counted without a start", `
	atom.shared.add.u32 %v, [m+12], 1;`, `atom\.shared\.add\.u32 .* 4 bytes at offset 12 were never written by this block; at offset 12 of .*; 2 times$`},
	{"counted", `
	st.shared.u32 [m+12], 0;
	bar.sync 0;
	atom.shared.add.u32 %v, [m+12], 1;
	bar.sync 0;
	ld.shared.u32 %v, [m+12];`, ``},
	{"vectors", `
	add.u32 %s, %s, %p;
	st.shared.v2.u32 [%s], {%t, %t};
	ld.shared.u64 %y, [%s];
	ld.shared.v2.u32 {%v, %w}, [%s];`, ``},
	{"half of a vector", `
	add.u32 %s, %s, %p;
	st.shared.u32 [%s+4], %t;
	ld.shared.v2.u32 {%v, %w}, [%s];`, `ld\.shared\.v2\.u32 .*: 4 bytes at offset \d*[02468] were never written`},
	{"asynchronous copy, padded with zeros", `
	cp.async.ca.shared.global [%s], [%x], 4, 2;
	cp.async.wait_all;
	ld.shared.u32 %v, [%s];`, ``},
	{"matrices", `
	mov.u32 %s, m;
	shl.b32 %p, %t, 4;
	and.b32 %p, %p, 496;
	add.u32 %s, %s, %p;
	stmatrix.sync.aligned.m8n8.x4.shared.b16 [%s], {%t, %t, %t, %t};
	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%v, %w, %v, %w}, [%s];`, ``},
	{"a matrix too many", `
	mov.u32 %s, m;
	shl.b32 %p, %t, 4;
	and.b32 %p, %p, 496;
	add.u32 %s, %s, %p;
	stmatrix.sync.aligned.m8n8.x1.shared.b16 [%s], {%t};
	ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%v, %w}, [%s];`, `ldmatrix.*: 16 bytes at offset 128 were never written by this block; .*; 16 times$`},
	{"mbarrier", `
	setp.ne.u32 %c, %t, 0;
	@%c bra wait;
	mbarrier.init.shared.b64 [m+512], 64;
wait:
	bar.sync 0;
	mbarrier.arrive.shared.b64 %y, [m+512];
again:
	mbarrier.test_wait.shared.b64 %c, [m+512], %y;
	@!%c bra again;`, ``},
	{"mbarrier that nobody made", `
	mov.u64 %y, 0;
	mbarrier.test_wait.shared.b64 %c, [m+512], %y;`, `mbarrier\.test_wait.* 8 bytes at offset 512 were never written by this block; at offset 512 of`},
	{"atomics of 128 bits", `
	.reg .b128 %q0, %q1;
	mov.b128 %q0, {%a, %x};
	st.shared.b128 [m+32], %q0;
	bar.sync 0;
	atom.shared.exch.b128 %q1, [m+32], %q0;`, ``},
	{"atomics of 128 bits without a start", `
	.reg .b128 %q0, %q1;
	mov.b128 %q0, {%a, %x};
	st.shared.u64 [m+32], %a;
	bar.sync 0;
	atom.shared.exch.b128 %q1, [m+32], %q0;`, ` 8 bytes at offset 40 were never written`},
}

func TestUninitializedSharedMemory(t *testing.T) {
	for name, checks := range map[string]check.Set{"": check.Uninitialized, " with races": check.Uninitialized | check.Races} {
		for _, major := range majors {
			for _, test := range sharedReads {
				t.Run(fmt.Sprintf("%s%s, %d.0", test.name, name, major), func(t *testing.T) {
					var found []string
					for _, f := range checked(t, major, checks, test.body, 2, 64) {
						if strings.HasPrefix(f, "uninit") {
							found = append(found, f)
						}
					}
					if test.want == "" {
						require.Empty(t, found)
						return
					}
					require.Len(t, found, 1)
					require.Regexp(t, test.want, found[0])
				})
			}
		}
	}
}

// TestCasesAreInitialized: of all kernels of testdata none reads shared memory
// that it has not written, so under the check they stay silent.
func TestCasesAreInitialized(t *testing.T) {
	require.NoError(t, filepath.WalkDir("../testdata", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".ptx" {
			return err
		}
		t.Run(filepath.ToSlash(path), func(t *testing.T) {
			var found []string
			c := vmtest.ReadCase(t, path)
			c.Watch = vmtest.Watching(&found)
			c.Watch.Checks = check.Uninitialized
			c.Run(t)
			require.Empty(t, found)
		})
		return nil
	}))
}
