// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// lines are those of a file of last calls that are not empty, in their order.
func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Len(t, text, lastCalls*lineBytes)
	found := []string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			found = append(found, line)
		}
	}
	slices.Sort(found)
	return found
}

// reader looks into the file in the middle of a call, as one does whose process
// died there.
type reader struct {
	driver.API
	look func()
}

func (r reader) CuMemAlloc(uint64) (driver.CUdeviceptr, driver.CUresult) {
	r.look()
	return 0x1234, driver.CUDA_ERROR_OUT_OF_MEMORY
}

func TestLastCalls(t *testing.T) {
	name := filepath.Join(t.TempDir(), "calls")
	last, err := OpenLast(name)
	require.NoError(t, err)
	require.Empty(t, lines(t, name))
	var during []string
	d := New(reader{look: func() { during = lines(t, name) }}, nil, last)
	for size := range uint64(lastCalls + 3) {
		d.CuMemAlloc(size)
	}
	require.Len(t, during, lastCalls)
	require.Regexp(t, `^0000000022 thread \d+ cuMemAlloc\(size=0x16\) \.\.\.$`, during[lastCalls-1])
	require.Regexp(t, `^0000000021 thread \d+ cuMemAlloc\(size=0x15\) = 0x1234, CUDA_ERROR_OUT_OF_MEMORY, \S+s$`, during[lastCalls-2])
	require.Regexp(t, `^0000000003 thread \d+ cuMemAlloc\(size=0x3\) = `, during[0])
	require.Regexp(t, `size=0x16\) = 0x1234`, lines(t, name)[lastCalls-1])
}

func TestLongCallsAreCut(t *testing.T) {
	name := filepath.Join(t.TempDir(), "calls")
	last, err := OpenLast(name)
	require.NoError(t, err)
	last.end(last.begin("short"), strings.Repeat("x", 2*lineBytes))
	require.Len(t, lines(t, name)[0], lineBytes-1)
}

func TestAnOldCallEndsWhereANewOneIs(t *testing.T) {
	name := filepath.Join(t.TempDir(), "calls")
	last, err := OpenLast(name)
	require.NoError(t, err)
	old := last.begin("old")
	for range lastCalls {
		last.begin("new")
	}
	last.end(old, "old = 0")
	require.NotContains(t, strings.Join(lines(t, name), "\n"), "old")
}

// A process that opens the file does not cut it under one that writes there,
// which would die by SIGBUS.
func TestTwoProcessesMayHaveOneFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "calls")
	first, err := OpenLast(name)
	require.NoError(t, err)
	var over atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for !over.Load() {
			first.begin("parent")
		}
	})
	for range 300 {
		_, err := OpenLast(name)
		require.NoError(t, err)
	}
	over.Store(true)
	writer.Wait()
	first.begin("parent again")
	require.Contains(t, strings.Join(lines(t, name), "\n"), "parent again")
}

func TestAFileThatCannotBeMade(t *testing.T) {
	_, err := OpenLast(t.TempDir())
	require.Error(t, err)
}
