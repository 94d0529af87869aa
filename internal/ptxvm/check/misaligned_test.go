// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

func TestMisalignedReport(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	for body, want := range map[string]string{
		"st.global.u32 [%a+2], %t;":                                                `4 bytes at 0x\w+, at offset 2 of device memory of 64 bytes`,
		"ld.global.v2.u32 {%v, %w}, [%a+4];":                                       `8 bytes at 0x\w+, at offset 4 of device memory of 64 bytes`,
		"ld.shared.u32 %v, [m+1];":                                                 `4 bytes at 0x1$`,
		"st.shared.v4.u32 [m+8], {%t, %t, %t, %t};":                                `16 bytes at 0x8$`,
		"atom.shared.add.u64 %x, [m+4], 1;":                                        `8 bytes at 0x4$`,
		"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%v}, [m+8];":                    `16 bytes at 0x8$`,
		"cp.async.cg.shared.global [m+8], [%a], 16;":                               `16 bytes at 0x8$`,
		"cp.async.ca.shared.global [m], [%a+2], 4;":                                `4 bytes at 0x\w+, at offset 2 of device memory of 64 bytes`,
		"mbarrier.init.shared.b64 [m+4], 1;":                                       `8 bytes at 0x4$`,
		"cvta.shared.u64 %x, 6;\n\tld.u32 %v, [%x];":                               `4 bytes at 0x1180000000000006$`,
		"wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {%v,%v,%v,%v}, [%a+2];": `4 bytes at 0x\w+, at offset 2 of device memory of 64 bytes`,
	} {
		k := vmtest.Kernel(t, vmtest.Load(t, d, "test", checkHead+"\t"+body+"\n\tret;\n}\n"), "k")
		err := k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: vmtest.Pack(vmtest.Zeroed(t, d, 64), uint64(0))})
		require.Regexp(t, `^misaligned address in kernel k, .*: `+want, err.Error(), body)
	}
}
