// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import "time"

// CUDAGO_CHECK_FAILED is the one result that cuda.h does not have: a [Checker]
// has found a defect in the program. It is not sticky, and FaultReport has the
// text. Drivers without checks never return it.
const CUDAGO_CHECK_FAILED CUresult = 10001

// Checker is implemented by a driver that can look for defects in the programs
// that it runs. It is not part of [API]: get it with [CheckerOf].
//
// A finding does not stop the work that it was found in. The next call that
// waits for the context returns CUDAGO_CHECK_FAILED once, unless the check
// "collect" is on, and the report is kept for TakeReports. The launch of a graph
// with dangling operands is refused: that call alone returns CUDAGO_CHECK_FAILED.
type Checker interface {
	// SetChecks switches to exactly the named checks, for work that is launched
	// from now on, and returns those that were on. Names are separated by
	// commas; "all" is all of them and "" none. The error names an unknown one.
	SetChecks(names string) (was string, err error)
	// Checks returns the names of the checks that are on.
	Checks() string
	// CheckNames lists the checks that SetChecks knows.
	CheckNames() []string
	// TakeReports returns the findings since the last call.
	TakeReports() []string
	// NoteSite says which place in the program makes the next call of this OS
	// thread, for reports. Only an allocation, a free or a launch uses it. An
	// empty site clears it.
	NoteSite(site string)
	// MayQuery reports whether a caller that the program knows nothing of may
	// query an event. While races are looked for, a query that succeeds counts as
	// a wait of the program: it would hide a race, or not, depending on what has
	// run first. So MayQuery is true then only if the program has waited itself
	// for what the event records, or if that ended a second ago: operands of a
	// program that never waits must be released some time. It is also true if the
	// query would fail.
	MayQuery(e CUevent) bool
	// HostAccess says that the host is about to use size bytes of memory that
	// the driver knows, at a host or device address.
	HostAccess(p uintptr, size uint64)
	// NameNodes names graph nodes for reports. A graph's executables keep the
	// names that the nodes had when they were made.
	NameNodes(nodes []CUgraphNode, names []string)
	// Cancel stops the kernels that are running. It is reported like a finding:
	// their context stays usable, their results are incomplete.
	Cancel()
	// CancelDevice stops the kernels of a device that is about to be reset.
	// Calls that wait for them fail as with a finding, and the reset discards
	// findings that were not reported. If the reset is abandoned, KeepDevice
	// keeps those.
	CancelDevice(dev CUdevice)
	KeepDevice(dev CUdevice)
	// Interrupt is Cancel for a caller that waits: it returns when the kernels
	// have ended, or patience is over, with what Cancel would have reported. It
	// is empty if none ran.
	Interrupt(patience time.Duration) []string
}

// CheckerOf finds the Checker of a driver, below drivers that wrap it with a
// method Unwrap. It is nil if there is none.
func CheckerOf(api API) Checker {
	for api != nil {
		if c, ok := api.(Checker); ok {
			return c
		}
		w, ok := api.(interface{ Unwrap() API })
		if !ok {
			return nil
		}
		api = w.Unwrap()
	}
	return nil
}
