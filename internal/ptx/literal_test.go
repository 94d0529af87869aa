// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConstants(t *testing.T) {
	i := func(n int64) Literal { return Literal{Bits: uint64(n)} }
	u := func(n uint64) Literal { return Literal{Kind: LiteralUnsigned, Bits: n} }
	d := func(f float64) Literal { return Literal{Kind: LiteralF64, Bits: math.Float64bits(f)} }
	f := func(bits uint32) Literal { return Literal{Kind: LiteralF32, Bits: uint64(bits)} }
	tests := []struct {
		text string
		want Literal
	}{
		{"0", i(0)}, {"00", i(0)}, {"42", i(42)}, {"42U", u(42)}, {"0U", u(0)},
		{"0x7f", i(0x7f)}, {"0XFFU", u(0xff)}, {"0x1E", i(0x1e)}, {"0xFFFFFFFFFFFFFFFF", u(math.MaxUint64)},
		{"017", i(15)}, {"0b101", i(5)}, {"0B11U", u(3)},
		{"9223372036854775808", u(1 << 63)}, {"-9223372036854775808", u(1 << 63)},
		{"0f3F800000", f(0x3f800000)}, {"0F7fc00001", f(0x7fc00001)}, {"0fBF800000", f(0xbf800000)},
		{"0d3FF0000000000000", d(1)}, {"1.5", d(1.5)}, {"1.", d(1)}, {"1e3", d(1000)}, {"2.5E-1", d(0.25)}, {"1.0e+2", d(100)},
		{"-1.5", d(-1.5)}, {"+2", i(2)}, {"1e400", d(math.Inf(1))},
		{"2 + 3 * 4", i(14)}, {"(2 + 3) * 4", i(20)}, {"10 - 3 - 2", i(5)}, {"-7 / 2", i(-3)}, {"-7 % 3", u(0)},
		{"5 % -3", u(5)}, {"7 / -2", i(-3)}, {"18446744073709551617", i(1)}, {"0x1ffffffffffffffff", u(math.MaxUint64)}, {"02000000000000000000001", i(1)},

		{"7 % 3", u(1)}, {"0xFFFFFFFFFFFFFFFFU / 2", u(math.MaxInt64)}, {"1 << 4 | 1", i(17)}, {"6 & 3 ^ 1", i(3)},
		{"-8 >> 1", i(-4)}, {"8U >> 1", u(4)}, {"1 << 65", i(2)}, {"1 << -1", Literal{Bits: 1 << 63}}, {"~0", u(math.MaxUint64)}, {"~0 >> 63", u(1)}, {"!5", i(0)}, {"!0", i(1)},
		{"1 < 2", i(1)}, {"-1 < 0U", i(0)}, {"-1 < 0", i(1)}, {"2 >= 2 && 1 != 2 || 0", i(1)}, {"1 == 2", i(0)}, {"3 <= 2", i(0)}, {"3 > 2", i(1)},
		{"1 ? 2 : 3", i(2)}, {"0 ? 2 : 1 ? 4 : 5", i(4)}, {"(.u64)-1 > 0", i(1)}, {"(.s64)0xFFFFFFFFFFFFFFFF < 0", i(1)},
		{"WARP_SZ", i(32)}, {"WARP_SZ-1", i(31)}, {"1.0 + 2.0", d(3)}, {"3.0 / 2.0 - 1.0 * 0.5", d(1)}, {"1.5 < 2.0", i(1)}, {"1.0 == 1.0", i(1)},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			m, err := Parse(".global .b64 x = " + tt.text + ";")
			require.NoError(t, err)
			require.Equal(t, tt.want, m.Items[0].(*Variable).Init.Value)
			back, err := Parse(".global .b64 x = " + tt.want.String() + ";")
			require.NoError(t, err)
			require.Equal(t, tt.want.Bits, back.Items[0].(*Variable).Init.Value.Bits)
		})
	}
}

func TestLiteralAsFloat(t *testing.T) {
	require.Equal(t, uint32(0x7fc00001), Literal{Kind: LiteralF32, Bits: 0x7fc00001}.Float32Bits())
	require.Equal(t, math.Float32bits(0.1), Literal{Kind: LiteralF64, Bits: math.Float64bits(0.1)}.Float32Bits())
	require.Equal(t, math.Float32bits(-3), Literal{Bits: ^uint64(2)}.Float32Bits())
	require.Equal(t, 1.5, Literal{Kind: LiteralF32, Bits: 0x3fc00000}.Float64())
}
