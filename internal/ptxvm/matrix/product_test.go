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

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/numeric"
	"github.com/cudago/cudago/internal/ptxvm/register"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// The matrices of these tests are laid out by words, as ldmatrix would bring
// them: a tile is 8 rows of 4 words, of which lane l has word l%4 of row l/4.
// Register r of A is tile r, down first, then right. B is the same with its
// columns as rows. C and D have two elements where A has a word. The executor
// works on elements instead.

// mmaShape is a case: shape, types of D, A, B and C, and other modifiers.
type mmaShape struct{ shape, types, words string }

var mmaShapes = []mmaShape{
	{"m16n8k8", "f16.f16.f16.f16", ""},
	{"m16n8k8", "f32.f16.f16.f32", ""},
	{"m16n8k16", "f16.f16.f16.f16", ""},
	{"m16n8k16", "f32.f16.f16.f32", ""},
	{"m16n8k8", "f32.bf16.bf16.f32", ""},
	{"m16n8k16", "f32.bf16.bf16.f32", ""},
	{"m16n8k4", "f32.tf32.tf32.f32", ""},
	{"m16n8k8", "f32.tf32.tf32.f32", ""},
	{"m16n8k16", "f32.e4m3.e4m3.f32", ""},
	{"m16n8k16", "f16.e5m2.e4m3.f16", ""},
	{"m16n8k32", "f32.e4m3.e5m2.f32", ""},
	{"m16n8k32", "f32.e5m2.e5m2.f32", ""},
	{"m16n8k32", "f16.e4m3.e4m3.f16", ""},
	{"m8n8k4", "f64.f64.f64.f64", ""},
	{"m16n8k4", "f64.f64.f64.f64", ".rn"},
	{"m16n8k8", "f64.f64.f64.f64", ".rz"},
	{"m16n8k16", "f64.f64.f64.f64", ".rp"},
	{"m8n8k16", "s32.s8.u8.s32", ""},
	{"m16n8k16", "s32.u8.s8.s32", ".satfinite"},
	{"m16n8k32", "s32.s8.s8.s32", ""},
	{"m16n8k32", "s32.u8.u8.s32", ""},
	{"m8n8k32", "s32.s4.u4.s32", ".satfinite"},
	{"m16n8k32", "s32.u4.s4.s32", ""},
	{"m16n8k64", "s32.s4.s4.s32", ""},
	{"m8n8k128", "s32.b1.b1.s32", ".xor.popc"},
	{"m8n8k128", "s32.b1.b1.s32", ".and.popc"},
	{"m16n8k128", "s32.b1.b1.s32", ".xor.popc"},
	{"m16n8k128", "s32.b1.b1.s32", ".and.popc"},
	{"m16n8k256", "s32.b1.b1.s32", ".xor.popc"},
	{"m16n8k256", "s32.b1.b1.s32", ".and.popc"},
}

// mmaCase is a case made concrete.
type mmaCase struct {
	mmaShape
	m, n, k     int
	td, ta, tb  ptxir.Type
	tc          ptxir.Type
	a, b, c     [][]int // b by columns
	name        string
	tail        []uint32 // further operands of each lane, metadata
	lastOperand string
}

func newMmaCase(t *testing.T, s mmaShape, r *rand.Rand) *mmaCase {
	x := &mmaCase{mmaShape: s, name: "mma.sync.aligned"}
	_, err := fmt.Sscanf(s.shape, "m%dn%dk%d", &x.m, &x.n, &x.k)
	require.NoError(t, err)
	types := strings.Split(s.types, ".")
	for i, to := range []*ptxir.Type{&x.td, &x.ta, &x.tb, &x.tc} {
		*to = matrixType(t, types[i])
	}
	x.a, x.b, x.c = randomMatrix(r, x.m, x.k, x.ta), randomMatrix(r, x.n, x.k, x.tb), randomMatrix(r, x.m, x.n, x.tc)
	return x
}

func matrixType(t *testing.T, name string) ptxir.Type {
	for typ := ptxir.B8; typ <= ptxir.E5M2; typ++ {
		if typ.String() == name {
			return typ
		}
	}
	require.Failf(t, "unknown type", "%q", name)
	return 0
}

// randomMatrix has small integers, which every sum of products holds exactly.
func randomMatrix(r *rand.Rand, rows, cols int, t ptxir.Type) [][]int {
	least, count := -4, 9
	switch t {
	case ptxir.S4:
		least, count = -8, 16
	case ptxir.U4:
		least, count = 0, 16
	case ptxir.S8:
		least, count = -128, 256
	case ptxir.U8:
		least, count = 0, 256
	case ptxir.B1:
		least, count = 0, 2
	case ptxir.S32:
		least, count = -1000, 2000
	}
	x := make([][]int, rows)
	for i := range x {
		for range cols {
			x[i] = append(x[i], least+r.IntN(count))
		}
	}
	return x
}

// element is the bits of a number.
func element(t ptxir.Type, v int) uint64 {
	switch t {
	case ptxir.F64:
		return math.Float64bits(float64(v))
	case ptxir.F32, ptxir.TF32:
		return uint64(math.Float32bits(float32(v)))
	case ptxir.BF16:
		return uint64(math.Float32bits(float32(v)) >> 16)
	case ptxir.F16:
		return uint64(numeric.ToHalf(float32(v)))
	case ptxir.E4M3:
		return uint64(numeric.RoundTo(float64(v), numeric.E4M3, ptxir.RoundRN))
	case ptxir.E5M2:
		return uint64(numeric.RoundTo(float64(v), numeric.E5M2, ptxir.RoundRN))
	}
	return uint64(v) & (1<<t.Bits() - 1)
}

// words packs each row of a matrix into words of 32 or 64 bits.
func words(x [][]int, t ptxir.Type) [][]uint64 {
	size := max(32, t.Bits())
	out := make([][]uint64, len(x))
	for i, row := range x {
		out[i] = make([]uint64, len(row)*t.Bits()/size)
		for j, v := range row {
			out[i][j*t.Bits()/size] |= element(t, v) << (j * t.Bits() % size)
		}
	}
	return out
}

// tiles deals words to lanes: register r of lane l is [r][l].
func tiles(x [][]uint64) (regs [][register.Lanes]uint64) {
	for col := 0; col < len(x[0]); col += 4 {
		for row := 0; row < len(x); row += 8 {
			var reg [register.Lanes]uint64
			for l := range register.Lanes {
				reg[l] = x[row+l/4][col+l%4]
			}
			regs = append(regs, reg)
		}
	}
	return regs
}

// sums deals the elements of C or D.
func sums(x [][]int, t ptxir.Type) (regs [][register.Lanes]uint64) {
	perReg := max(1, 32/t.Bits())
	for row := 0; row < len(x); row += 8 {
		for i := 0; i < 2; i += perReg {
			var reg [register.Lanes]uint64
			for l := range register.Lanes {
				for j := range perReg {
					reg[l] |= element(t, x[row+l/4][l%4*2+i+j]) << (j * t.Bits())
				}
			}
			regs = append(regs, reg)
		}
	}
	return regs
}

// product is the plain triple loop.
func (x *mmaCase) product(a [][]int) [][]int {
	d := make([][]int, x.m)
	for i := range d {
		for j := range x.n {
			sum := x.c[i][j]
			for k := range x.k {
				switch x.words {
				case ".xor.popc":
					sum += a[i][k] ^ x.b[j][k]
				default: // of bits, a product is and
					sum += a[i][k] * x.b[j][k]
				}
			}
			d[i] = append(d[i], sum)
		}
	}
	return d
}

// spelling is the instruction's name.
func (x *mmaCase) spelling(layouts string) string {
	before, after := "", x.words
	if strings.HasPrefix(x.words, ".satfinite") {
		before, after = x.words, ""
	}
	if layouts != "" {
		layouts = "." + layouts
	}
	return x.name + "." + x.shape + layouts + before + "." + x.types + after
}

// run executes the instruction with operands by register and lane.
func (x *mmaCase) run(t *testing.T, layouts string, a, b, c [][register.Lanes]uint64, results int) [][register.Lanes]uint64 {
	t.Helper()
	var text, list strings.Builder
	var buffer []byte
	width := func(t ptxir.Type) int { return max(4, t.Size()) }
	vector := func(name string, n int) string {
		var regs []string
		for i := range n {
			regs = append(regs, fmt.Sprintf("%%%s%d", name, i))
		}
		return "{" + strings.Join(regs, ",") + "}"
	}
	fmt.Fprintf(&list, "%s %s", x.spelling(layouts), vector("d", results))
	for _, f := range []struct {
		name string
		typ  ptxir.Type
		regs [][register.Lanes]uint64
	}{{"a", x.ta, a}, {"b", x.tb, b}, {"c", x.tc, c}} {
		for i, reg := range f.regs {
			fmt.Fprintf(&text, "\tld.global.b%d %%%s%d, [%%p+%d];\n", 8*width(f.typ), f.name, i, len(buffer))
			for _, v := range reg {
				buffer = binary.LittleEndian.AppendUint64(buffer, v)
			}
		}
		fmt.Fprintf(&text, "\t.reg .b%d %%%s<%d>;\n", 8*width(f.typ), f.name, len(f.regs))
		fmt.Fprintf(&list, ", %s", vector(f.name, len(f.regs)))
	}
	for i := range len(x.tail) / register.Lanes {
		fmt.Fprintf(&text, "\tld.global.b32 %%e, [%%p+%d];\n", len(buffer))
		fmt.Fprintf(&list, ", %%e, %s", x.lastOperand)
		for _, v := range x.tail[i*register.Lanes:][:register.Lanes] {
			buffer = binary.LittleEndian.AppendUint64(buffer, uint64(v))
		}
	}
	fmt.Fprintf(&text, "\t.reg .b%d %%d<%d>;\n\t%s;\n", 8*width(x.td), results, &list)
	for i := range results {
		fmt.Fprintf(&text, "\tst.global.b%d [%%o+%d], %%d%d;\n", 8*width(x.td), 8*register.Lanes*i, i)
	}
	d := ptxvm.NewDevice(ptxvm.Config{})
	defer d.Close()
	k := vmtest.Kernel(t, vmtest.Load(t, d, "test", mmaHead+declaredFirst(text.String())+"\tret;\n}\n"), "k")
	p, o := vmtest.Zeroed(t, d, len(buffer)), vmtest.Zeroed(t, d, 8*register.Lanes*results)
	require.NoError(t, d.Memory().Write(p, buffer))
	require.NoError(t, k.Launch(&ptxvm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{register.Lanes, 1, 1}, Params: vmtest.Pack(p, o)}))
	raw := make([]byte, 8*register.Lanes*results)
	require.NoError(t, d.Memory().Read(raw, o))
	out := make([][register.Lanes]uint64, results)
	require.NoError(t, binary.Read(strings.NewReader(string(raw)), binary.LittleEndian, out))
	return out
}

// declaredFirst moves the declarations of registers to the top.
func declaredFirst(text string) string {
	var head, rest strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\t.reg") {
			head.WriteString(line)
			continue
		}
		rest.WriteString(line)
	}
	return head.String() + rest.String()
}

// mmaHead opens a kernel whose %p and %o are the lane's words of 8 bytes in
// the operands and in the results.
const mmaHead = `.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 o)
{
	.reg .b64 %p, %o, %q;
	.reg .b32 %t, %e;
	ld.param.u64 %p, [p];
	ld.param.u64 %o, [o];
	mov.u32 %t, %tid.x;
	mul.wide.u32 %q, %t, 8;
	add.u64 %p, %p, %q;
	add.u64 %o, %o, %q;
`

func TestMma(t *testing.T) {
	for i, s := range mmaShapes {
		t.Run(s.shape+"."+s.types+s.words, func(t *testing.T) {
			x := newMmaCase(t, s, rand.New(rand.NewPCG(uint64(i), 1)))
			want := sums(x.product(x.a), x.td)
			require.Equal(t, want, x.run(t, "row.col", tiles(words(x.a, x.ta)), tiles(words(x.b, x.tb)), sums(x.c, x.tc), len(want)))
		})
	}
}

// TestMmaSaturates adds 1 to the largest sum, and subtracts 1 from the smallest.
func TestMmaSaturates(t *testing.T) {
	for _, tt := range []struct {
		words      string
		high, less uint64
	}{{".satfinite", 0x7fffffff, 0x80000000}, {"", 0x80000000, 0x7fffffff}} {
		x := newMmaCase(t, mmaShape{"m8n8k32", "s32.s4.s4.s32", tt.words}, rand.New(rand.NewPCG(1, 1)))
		var a, b [1][register.Lanes]uint64
		a[0][0], a[0][4] = 1, 15 // row 0: 1 and row 1: -1 in column 0
		b[0][0] = 1
		var c [2][register.Lanes]uint64
		c[0][0], c[0][4] = 0x7fffffff, 0x80000000
		d := x.run(t, "row.col", a[:], b[:], c[:], 2)
		require.Equal(t, []uint64{tt.high, tt.less}, []uint64{d[0][0], d[0][4]})
	}
}

// TestMmaRoundsDoubles: 1 + 2^-60 is 1 or the number after it.
func TestMmaRoundsDoubles(t *testing.T) {
	up := math.Float64bits(1 + 0x1p-52)
	one := math.Float64bits(1)
	for words, want := range map[string][2]uint64{
		"": {one, one | 1<<63}, ".rn": {one, one | 1<<63}, ".rz": {one, one | 1<<63},
		".rp": {up, one | 1<<63}, ".rm": {one, up | 1<<63},
	} {
		x := newMmaCase(t, mmaShape{"m8n8k4", "f64.f64.f64.f64", words}, rand.New(rand.NewPCG(1, 1)))
		var a, b [1][register.Lanes]uint64
		a[0][0], a[0][4] = math.Float64bits(0x1p-60), math.Float64bits(-0x1p-60)
		b[0][0] = one
		var c [2][register.Lanes]uint64
		c[0][0], c[0][4] = one, one|1<<63
		d := x.run(t, "row.col", a[:], b[:], c[:], 2)
		require.Equal(t, want, [2]uint64{d[0][0], d[0][4]}, words)
	}
}
