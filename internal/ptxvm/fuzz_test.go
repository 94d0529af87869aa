// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// FuzzLaunch requires of any module that loads that its kernels end, or fail as
// kernels do, with whatever bytes as parameters, and with all checks too.
func FuzzLaunch(f *testing.F) {
	err := filepath.WalkDir("testdata", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".ptx" {
			return err
		}
		text, err := os.ReadFile(path)
		f.Add(string(text), []byte{})
		return err
	})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string, params []byte) {
		ir, err := ptxir.Load("fuzz", text)
		if err != nil {
			return
		}
		d := ptxvm.NewDevice(ptxvm.Config{MemoryBytes: 16 << 20, Workers: 1, StepBudget: 200})
		defer d.Close()
		m, err := d.Load(ir)
		if err != nil {
			return
		}
		for _, name := range m.KernelNames() {
			k, err := m.Kernel(name)
			if err != nil {
				continue
			}
			for _, checks := range []check.Set{0, check.Races | check.Uninitialized} {
				requireEnds(t, k, params, checks)
			}
		}
	})
}

func requireEnds(t *testing.T, k *ptxvm.Kernel, params []byte, checks check.Set) {
	t.Helper()
	bytes := make([]byte, vmtest.ParamBytes(k))
	copy(bytes, params)
	l := &ptxvm.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{40, 1, 1}, DynamicShared: 64, Params: bytes}
	if checks != 0 {
		var found []string
		l.Watch = vmtest.Watching(&found)
		l.Watch.Checks = checks
	}
	err := k.Launch(l)
	var stopped *fault.Fault
	var refused *ptxvm.LaunchError
	require.True(t, err == nil || errors.As(err, &stopped) || errors.As(err, &refused), "%v", err)
}
