// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
)

// Zeroed allocates size bytes of zeros.
func Zeroed(t testing.TB, d *ptxvm.Device, size int) uint64 {
	t.Helper()
	p, err := d.Memory().Alloc(uint64(size), "the test")
	require.NoError(t, err)
	require.NoError(t, d.Memory().Write(p, make([]byte, size)))
	return p
}

// Word reads 32 bits.
func Word(t testing.TB, d *ptxvm.Device, addr uint64) uint32 {
	b := make([]byte, 4)
	require.NoError(t, d.Memory().Read(b, addr))
	return binary.LittleEndian.Uint32(b)
}
