// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm"
)

// LoadFile loads a PTX file on a device.
func LoadFile(t testing.TB, d *ptxvm.Device, path string) *ptxvm.Module {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return Load(t, d, filepath.Base(path), string(text))
}

// Load loads a module on a device.
func Load(t testing.TB, d *ptxvm.Device, name, text string) *ptxvm.Module {
	t.Helper()
	ir, err := ptxir.Load(name, text)
	require.NoError(t, err)
	m, err := d.Load(ir)
	require.NoError(t, err)
	return m
}

// Kernel returns a kernel of a module.
func Kernel(t testing.TB, m *ptxvm.Module, name string) *ptxvm.Kernel {
	k, err := m.Kernel(name)
	require.NoError(t, err)
	return k
}

// Pack lays out 8-byte and 4-byte arguments.
func Pack(args ...any) []byte {
	var out []byte
	for _, a := range args {
		switch v := a.(type) {
		case uint64:
			for len(out)%8 != 0 {
				out = append(out, 0)
			}
			out = binary.LittleEndian.AppendUint64(out, v)
		case uint32:
			out = binary.LittleEndian.AppendUint32(out, v)
		case float32:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out
}

// ParamBytes is how many bytes a kernel's parameters take.
func ParamBytes(k *ptxvm.Kernel) int {
	n := 0
	for _, p := range k.Params() {
		n = int(p.Offset + p.Size)
	}
	return n
}
