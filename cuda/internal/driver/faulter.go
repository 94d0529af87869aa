// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

// Faulter is implemented by a driver that makes calls fail for tests. It is not
// part of [API]: get it with [FaulterOf]. A call that is made to fail does not
// reach the wrapped driver.
type Faulter interface {
	// Fail makes the n-th call from now on, counted from 1, of the method with the
	// given name return result, once. An empty name is any call.
	Fail(call string, n int, result CUresult)
	// FailAtRandom makes that share of all calls fail from now on, 0 to 1.
	FailAtRandom(rate float64)
	// Faults returns how many calls of each method have been made to fail.
	Faults() map[string]int
}

// FaulterOf finds the Faulter of a driver as [CheckerOf] finds its Checker. It is
// nil if there is none.
func FaulterOf(api API) Faulter {
	for api != nil {
		if f, ok := api.(Faulter); ok {
			return f
		}
		w, ok := api.(interface{ Unwrap() API })
		if !ok {
			return nil
		}
		api = w.Unwrap()
	}
	return nil
}
