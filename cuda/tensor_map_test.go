// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func sampleMap() TensorMapParams {
	return TensorMapParams{Ptr: 0x1000, Type: 7, Dims: []uint64{64, 32}, Strides: []uint64{256}, Box: []uint32{32, 8}, Steps: []uint32{1, 1}}
}

func TestEncodeTensorMap(t *testing.T) {
	c := openSimulated(t, Options{})
	b, err := c.EncodeTensorMap(sampleMap())
	require.NoError(t, err)
	other := sampleMap()
	other.Box = []uint32{32, 16}
	b2, err := c.EncodeTensorMap(other)
	require.NoError(t, err)
	require.NotEqual(t, b, b2)
}

func TestEncodeTensorMapSaysWhatItWasTold(t *testing.T) {
	c := openSimulated(t, Options{})
	p := sampleMap()
	p.Ptr = 8
	_, err := c.EncodeTensorMap(p)
	require.ErrorIs(t, err, ErrorInvalidValue)
	require.ErrorContains(t, err, "box [32 8]")
	p = sampleMap()
	p.Type = 11
	_, err = c.EncodeTensorMap(p)
	require.ErrorIs(t, err, ErrorNotSupported)
	require.ErrorContains(t, err, "type 11")
	p = sampleMap()
	p.Strides = nil
	_, err = c.EncodeTensorMap(p)
	var wrong *ArgumentError
	require.ErrorAs(t, err, &wrong)
}

func TestDeviceWithoutTensorMaps(t *testing.T) {
	c := openSimulated(t, Options{})
	require.ErrorIs(t, c.dev.NeedTensorMaps(), ErrorNotSupported)
}
