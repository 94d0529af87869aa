// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build cudagotest

package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/cuda"
)

// A capture whose end has failed once can be ended again, and holds what it held.
func TestEndOfACaptureCanBeRepeated(t *testing.T) {
	for name, end := range map[string]func(*Capture) error{
		"End": func(c *Capture) error {
			g, err := c.End()
			if err != nil {
				return err
			}
			return g.Close()
		},
		"Abort": (*Capture).Abort,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := open(t)
			s := newStream(t, ctx)
			k := tokens(1)
			c := begin(t, s, Options{})
			require.NoError(t, recordHost(c, s, "a", hostFunc(func() {}), operands(k...)))
			drv := ctx.Driver()
			drv.FailCall("cuStreamEndCapture", 1, cuda.ErrorOutOfMemory)
			require.ErrorIs(t, end(c), cuda.ErrorOutOfMemory)
			require.False(t, c.IsEnded())
			drv.FailCall("cuStreamEndCapture", 1, cuda.ErrorOutOfMemory)
			drv.FailCall("cuStreamIsCapturing", 2, cuda.ErrorOutOfMemory) // the driver does not say
			require.ErrorIs(t, end(c), cuda.ErrorOutOfMemory)
			require.False(t, c.IsEnded())
			require.True(t, drv.Capturing())
			kept(t, k...)
			require.NoError(t, end(c))
			require.True(t, c.IsEnded())
			require.False(t, drv.Capturing())
			released(t, k...)
		})
	}
}
