// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"strings"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// faulter returns what makes calls of this driver fail.
//
// Errors: an [*Error] with [ErrorNotSupported] if nothing does.
func (d *Driver) faulter() (driver.Faulter, error) {
	if f := driver.FaulterOf(d.api); f != nil {
		return f, nil
	}
	return nil, &Error{Op: "faults", Result: ErrorNotSupported, Detail: "the driver " + d.Name() + " was opened without the setting faults"}
}

// FailAtRandom makes that share of all driver calls fail from now on, 0 to 1. For
// tests, on a simulated driver that was opened with the setting faults.
//
// Errors: an [*Error] with [ErrorNotSupported] on any other driver.
func (d *Driver) FailAtRandom(rate float64) error {
	f, err := d.faulter()
	if err == nil {
		f.FailAtRandom(rate)
	}
	return err
}

// FailNext makes the n-th call from now on, counted from 1, of the driver call of
// the given name in cuda.h return r, once.
//
// Errors: those of [Driver.FailAtRandom].
func (d *Driver) FailNext(call string, n int, r Result) error {
	f, err := d.faulter()
	if err == nil {
		f.Fail(seamName(call), n, driver.CUresult(r))
	}
	return err
}

// Faults returns how many calls were made to fail, by their names in cuda.h.
//
// Errors: those of [Driver.FailAtRandom].
func (d *Driver) Faults() (map[string]int, error) {
	f, err := d.faulter()
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for call, n := range f.Faults() {
		counts["c"+strings.TrimPrefix(call, "C")] = n
	}
	return counts, nil
}

// seamName turns cuda.h's cuInit into the seam's CuInit.
func seamName(call string) string {
	if rest, ok := strings.CutPrefix(call, "cu"); ok {
		return "Cu" + rest
	}
	return call
}
