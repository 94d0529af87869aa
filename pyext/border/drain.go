// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package border

import "github.com/cudago/cudago/internal/finalize"

// postponed tries the driver's postponed releases: those that wait for the end of a
// capture, or of their stream's work.
var postponed = finalize.NewSweep(Reaper, Callbacks.Alone, func() {
	if d := Driver.Load(); d != nil {
		d.Drain()
	}
})
