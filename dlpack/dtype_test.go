// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package dlpack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/dlpack"
)

func TestParseDataType(t *testing.T) {
	tests := []struct {
		name string
		want dlpack.DataType
	}{
		{"float32", dlpack.DataType{Code: 2, Bits: 32, Lanes: 1}},
		{"f4", dlpack.DataType{Code: 2, Bits: 32, Lanes: 1}},
		{"<f4", dlpack.DataType{Code: 2, Bits: 32, Lanes: 1}},
		{"=f4", dlpack.DataType{Code: 2, Bits: 32, Lanes: 1}},
		{"torch.float32", dlpack.DataType{Code: 2, Bits: 32, Lanes: 1}},
		{"i8", dlpack.DataType{Code: 0, Bits: 64, Lanes: 1}},
		{"int8", dlpack.DataType{Code: 0, Bits: 8, Lanes: 1}},
		{"|u1", dlpack.DataType{Code: 1, Bits: 8, Lanes: 1}},
		{"?", dlpack.DataType{Code: 6, Bits: 8, Lanes: 1}},
		{"b1", dlpack.DataType{Code: 6, Bits: 8, Lanes: 1}},
		{"c16", dlpack.DataType{Code: 5, Bits: 128, Lanes: 1}},
		{"torch.bfloat16", dlpack.DataType{Code: 4, Bits: 16, Lanes: 1}},
		{"torch.float8_e4m3fn", dlpack.DataType{Code: 10, Bits: 8, Lanes: 1}},
		{"torch.float4_e2m1fn_x2", dlpack.DataType{Code: 17, Bits: 4, Lanes: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := dlpack.ParseDataType(tt.name)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			again, err := dlpack.ParseDataType(got.String())
			require.NoError(t, err)
			require.Equal(t, got, again)
			if s := got.TypeStr(); s != "" {
				again, err = dlpack.ParseDataType(s)
				require.NoError(t, err)
				require.Equal(t, got, again)
			}
		})
	}
}

func TestParseDataTypeRefuses(t *testing.T) {
	for _, name := range []string{"", ">f4", "f", "f3", "<", "float", "<float32", "object", "V2", "float32 "} {
		_, err := dlpack.ParseDataType(name)
		require.ErrorContains(t, err, "unknown or not in native byte order", name)
	}
}

func TestDataTypeSize(t *testing.T) {
	require.EqualValues(t, 4, dlpack.DataType{Code: 2, Bits: 32, Lanes: 1}.Size())
	require.EqualValues(t, 1, dlpack.DataType{Code: 17, Bits: 4, Lanes: 2}.Size())
	require.Zero(t, dlpack.DataType{Code: 17, Bits: 4, Lanes: 1}.Size(), "two share a byte")
	require.Zero(t, dlpack.DataType{Code: 200, Bits: 8, Lanes: 1}.Size())
	require.Equal(t, "DLDataType(200, 8, 1)", dlpack.DataType{Code: 200, Bits: 8, Lanes: 1}.String())
	require.Empty(t, dlpack.DataType{Code: 4, Bits: 16, Lanes: 1}.TypeStr())
}
