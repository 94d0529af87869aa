// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/register"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// inMemory writes rows of packed elements, each at a multiple of pitch bytes.
func inMemory(rows [][]uint64, pitch int) []byte {
	out := make([]byte, pitch*len(rows))
	for i, row := range rows {
		for j, v := range row {
			binary.LittleEndian.PutUint32(out[i*pitch+4*j:], uint32(v))
		}
	}
	return out
}

// TestWmmaSmallElements multiplies matrices of 4 bits and of 1 bit, which lie
// in memory with room between their rows.
func TestWmmaSmallElements(t *testing.T) {
	tests := []struct {
		mmaShape
		layout string // of C and D
	}{
		{mmaShape{"m8n8k32", "s32.s4.s4.s32", ""}, "row"},
		{mmaShape{"m8n8k32", "s32.u4.u4.s32", ".satfinite"}, "col"},
		{mmaShape{"m8n8k128", "s32.b1.b1.s32", ".xor.popc"}, "row"},
		{mmaShape{"m8n8k128", "s32.b1.b1.s32", ".and.popc"}, "col"},
	}
	for i, tt := range tests {
		t.Run(tt.types+tt.words, func(t *testing.T) {
			x := newMmaCase(t, tt.mmaShape, rand.New(rand.NewPCG(uint64(i), 4)))
			typ := strings.Split(tt.types, ".")[1]
			c, want := x.c, x.product(x.a)
			if tt.layout == "col" {
				c, want = transposed(c), transposed(want)
			}
			text := fmt.Sprintf(`	.reg .b32 %%a, %%b, %%c<2>, %%d<2>;
	mov.u32 %%t, %d;
	wmma.load.a.sync.aligned.row.%[2]s.global.%[3]s {%%a}, [%%p], %%t;
	wmma.load.b.sync.aligned.col.%[2]s.%[3]s {%%b}, [%%p+512];
	wmma.load.c.sync.aligned.%[4]s.%[2]s.s32 {%%c0, %%c1}, [%%p+1024], 12;
	wmma.mma%[5]s.sync.aligned.row.col.%[2]s.%[6]s {%%d0, %%d1}, {%%a}, {%%b}, {%%c0, %%c1};
	wmma.store.d.sync.aligned.%[4]s.%[2]s.global.s32 [%%o], {%%d0, %%d1}, 12;
`, 3*x.k, x.shape, typ, tt.layout, x.words, x.types)
			d := ptxvm.NewDevice(ptxvm.Config{})
			defer d.Close()
			head := mmaHead[:strings.Index(mmaHead, "\tmov.u32")] // all lanes give the matrices' addresses
			k := vmtest.Kernel(t, vmtest.Load(t, d, "test", head+declaredFirst(text)+"\tret;\n}\n"), "k")
			p, o := vmtest.Zeroed(t, d, 2048), vmtest.Zeroed(t, d, 2048)
			row := x.k * x.ta.Bits() / 8
			require.NoError(t, d.Memory().Write(p, inMemory(words(x.a, x.ta), 3*row)))
			require.NoError(t, d.Memory().Write(p+512, inMemory(words(x.b, x.tb), row)))
			require.NoError(t, d.Memory().Write(p+1024, inMemory(words(c, x.tc), 48)))
			require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{register.Lanes, 1, 1}, Params: vmtest.Pack(p, o)}))
			got := make([]byte, 48*8)
			require.NoError(t, d.Memory().Read(got, o))
			require.Equal(t, inMemory(words(want, x.td), 48), got)
		})
	}
}

func transposed(x [][]int) [][]int {
	out := make([][]int, len(x[0]))
	for _, row := range x {
		for j, v := range row {
			out[j] = append(out[j], v)
		}
	}
	return out
}

// TestWmmaRoundsDoubles: the modifier reaches the sums.
func TestWmmaRoundsDoubles(t *testing.T) {
	x := newMmaCase(t, mmaShape{"m8n8k4", "f64.f64.f64.f64", ".rp"}, rand.New(rand.NewPCG(1, 1)))
	x.name = "wmma.mma.sync.aligned.row.col"
	var a, b [1][register.Lanes]uint64
	for l := range register.Lanes { // a product of 4 * 2^-60, wherever the elements are
		a[0][l], b[0][l] = math.Float64bits(0x1p-60), math.Float64bits(1)
	}
	var c [2][register.Lanes]uint64
	for l := range register.Lanes {
		c[0][l], c[1][l] = math.Float64bits(1), math.Float64bits(1)
	}
	d := x.run(t, "", a[:], b[:], c[:], 2)
	// Each of the four sums is rounded up.
	require.Equal(t, math.Float64bits(1+4*0x1p-52), d[0][0])
}
