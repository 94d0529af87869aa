// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/register"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// matrixHead opens a kernel of a warp that has copied its 512 bytes at p to
// shared memory, row by row in another order, and whose %s is a row's address.
const matrixHead = `.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 o)
{
	.reg .b64 %p, %o, %q;
	.reg .b32 %t, %s, %r<4>;
	.shared .align 16 .b8 m[512];
	ld.param.u64 %p, [p];
	ld.param.u64 %o, [o];
	mov.u32 %t, %tid.x;
	mul.wide.u32 %q, %t, 16;
	add.u64 %p, %p, %q;
	add.u64 %o, %o, %q;
	mov.u32 %s, m;
	xor.b32 %t, %t, 21;
	mad.lo.u32 %s, %t, 16, %s;
	ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%p];
`

func runMatrix(t *testing.T, body string, in []byte) []byte {
	t.Helper()
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	k := vmtest.Kernel(t, vmtest.Load(t, d, "test", matrixHead+body+"\tret;\n}\n"), "k")
	p, o := vmtest.Zeroed(t, d, 512), vmtest.Zeroed(t, d, 512)
	require.NoError(t, d.Memory().Write(p, in))
	require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{register.Lanes, 1, 1}, Params: vmtest.Pack(p, o)}))
	out := make([]byte, 512)
	require.NoError(t, d.Memory().Read(out, o))
	return out
}

func randomBytes(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 5))
	out := make([]byte, 512)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// packedRows writes rows of 16 numbers of some bits, as strings of ones and
// zeros from the last to the first.
func packedRows(x [][]int, bits int) []byte {
	var out []byte
	for _, row := range x {
		text := ""
		for _, v := range row {
			text = fmt.Sprintf("%0*b", bits, v) + text
		}
		text = strings.Repeat("1", 128-len(text)) + text // the padding is not looked at
		for i := 15; i >= 0; i-- {
			var b byte
			_, _ = fmt.Sscanf(text[8*i:8*i+8], "%b", &b)
			out = append(out, b)
		}
	}
	return out
}

// TestLoadMatrixBytes: the words that a warp gets are those of tiles, of the
// matrix or of what its columns make.
func TestLoadMatrixBytes(t *testing.T) {
	for _, tt := range []struct {
		text string
		bits int
		tall bool
		regs int
	}{
		{"m8n16.x1.shared.b8x16.b4x16_p64", 4, false, 1},
		{"m8n16.x2.shared.b8x16.b6x16_p32", 6, false, 2},
		{"m8n16.x4.shared.b8x16.b4x16_p64", 4, false, 4},
		{"m16n16.x1.trans.shared.b8", 8, true, 2},
		{"m16n16.x2.trans.b8", 8, true, 4},
		{"m16n16.x1.trans.shared.b8x16.b6x16_p32", 6, true, 2},
		{"m16n16.x2.trans.shared.b8x16.b4x16_p64", 4, true, 4},
	} {
		t.Run(tt.text, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(tt.regs), uint64(tt.bits)))
			x := make([][]int, register.Lanes)
			for i := range x {
				for range 16 {
					x[i] = append(x[i], r.IntN(1<<tt.bits))
				}
			}
			var regs []string
			for i := range tt.regs {
				regs = append(regs, fmt.Sprintf("%%r%d", i))
			}
			address := "%s"
			if !strings.Contains(tt.text, "shared") {
				address = "%q"
			}
			body := fmt.Sprintf(`	st.shared.v4.b32 [%%s], {%%r0, %%r1, %%r2, %%r3};
	cvt.u64.u32 %%q, %%s;
	cvta.shared.u64 %%q, %%q;
	ldmatrix.sync.aligned.%s {%s}, [%s];
	st.global.v4.b32 [%%o], {%%r0, %%r1, %%r2, %%r3};
`, tt.text, strings.Join(regs, ", "), address)
			out := runMatrix(t, body, packedRows(x, tt.bits))
			for j := range tt.regs {
				for l := range register.Lanes {
					var want, got [4]int
					for i := range 4 {
						if tt.tall { // element 4t+i of column g, then of column g+8
							want[i] = x[j/2*16+l%4*4+i][j%2*8+l/4]
						} else {
							want[i] = x[8*j+l/4][l%4*4+i]
						}
						got[i] = int(out[16*l+4*j+i])
					}
					require.Equal(t, want, got, "register %d of lane %d", j, l)
				}
			}
		})
	}
}

// TestStoreMatrixBytes stores fragments as mma leaves them, so that rows in
// memory are the matrix's columns.
func TestStoreMatrixBytes(t *testing.T) {
	for n, regs := range map[int]string{1: "%r0", 2: "%r0, %r1", 4: "%r0, %r1, %r2, %r3"} {
		in := randomBytes(uint64(n))
		body := fmt.Sprintf(`	stmatrix.sync.aligned.m16n8.x%d.trans.shared.b8 [%%s], {%s};
	bar.warp.sync -1;
	ld.shared.v4.b32 {%%r0, %%r1, %%r2, %%r3}, [%%s];
	st.global.v4.b32 [%%o], {%%r0, %%r1, %%r2, %%r3};
`, n, regs)
		out := runMatrix(t, body, in)
		for j := range n {
			for l := range register.Lanes {
				for i := range 4 { // elements (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1) of a matrix of 16 rows
					row, col := l/4+i/2*8, l%4*2+i%2
					require.Equal(t, in[16*l+4*j+i], out[16*(8*j+col)+row], "x%d: element %d of register %d of lane %d", n, i, j, l)
				}
			}
		}
	}
}
