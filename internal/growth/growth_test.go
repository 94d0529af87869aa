// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package growth_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/growth"
)

// failure is a test that may fail: Fatalf returns here.
type failure struct {
	testing.TB
	hasFailed bool
}

func (f *failure) Helper()               {}
func (f *failure) Fatalf(string, ...any) { f.hasFailed = true }

func fails(n int, read func(n int)) bool {
	f := &failure{}
	growth.RequireLinear(f, n, func(n int) int { return n }, read)
	return f.hasFailed
}

var found int

func TestWhatIsLinearPassesAndWhatIsNotFails(t *testing.T) {
	count := func(times, bytes int) {
		for i := range times {
			for j := range bytes {
				found += i ^ j
			}
		}
	}
	require.False(t, fails(2500, func(n int) { count(n, 1000) }))
	require.True(t, fails(2500, func(n int) { count(n, n) }), "time")
	var kept []byte
	require.False(t, fails(10_000, func(n int) { kept = make([]byte, 100*n) }))
	require.True(t, fails(1000, func(n int) { kept = make([]byte, n*n) }), "memory")
	require.NotEmpty(t, kept)
}
