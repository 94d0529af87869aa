// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// ErrorCheckFailed is what a driver with checks returns from a call that waits
// when they have found a defect in the program. It is not sticky: what was found
// did not stop the work. No other driver returns it.
const ErrorCheckFailed = Result(driver.CUDAGO_CHECK_FAILED)

var checkFailedText = resultText{"CUDAGO_CHECK_FAILED", "a check found a defect"}

// checker returns what looks for defects in this driver's programs.
//
// Errors: an [*Error] with [ErrorNotSupported] if the driver cannot.
func (d *Driver) checker(op string) (driver.Checker, error) {
	if c := driver.CheckerOf(d.api); c != nil {
		return c, nil
	}
	return nil, &Error{Op: op, Result: ErrorNotSupported, Detail: "the driver " + d.Name() + " has no checks"}
}

// SetChecks switches to exactly the named checks for work that is queued from
// now on, and returns the names of those that were on. Names are separated by
// commas; see [Driver.CheckNames]. "all" is all of them, and "" is none. With
// "collect" among them no call fails with what is found.
//
// Errors: an [*Error] with [ErrorNotSupported] if the driver has no checks; an
// [*ArgumentError] for an unknown name.
func (d *Driver) SetChecks(names string) (was string, err error) {
	c, err := d.checker("checks")
	if err != nil {
		return "", err
	}
	was, err = c.SetChecks(names)
	if err != nil {
		return "", badValue("", "%v", err)
	}
	return was, nil
}

// Checks returns the names of the checks that are on, separated by commas.
func (d *Driver) Checks() string {
	if c := driver.CheckerOf(d.api); c != nil {
		return c.Checks()
	}
	return ""
}

// CheckNames returns the names of the checks that the driver has.
func (d *Driver) CheckNames() []string {
	if c := driver.CheckerOf(d.api); c != nil {
		return c.CheckNames()
	}
	return nil
}

// TakeReports returns what checks have found since the last call, whether or not
// a call has failed with it.
func (d *Driver) TakeReports() []string {
	if c := driver.CheckerOf(d.api); c != nil {
		return c.TakeReports()
	}
	return nil
}

// NoteSite says where in the program the next allocation, free or launch of this
// OS thread comes from, for the reports of checks. It does nothing where there
// are none.
func (d *Driver) NoteSite(site string) {
	if c := driver.CheckerOf(d.api); c != nil {
		c.NoteSite(site)
	}
}

// HostAccess says that the host is about to use memory that the driver knows,
// for checks.
func (d *Driver) HostAccess(p uintptr, size uint64) {
	if c := driver.CheckerOf(d.api); c != nil {
		c.HostAccess(p, size)
	}
}

// CancelKernels ends the kernels that run now. What they were to compute is
// incomplete, and that is reported like the finding of a check; their context
// stays usable.
//
// Errors: an [*Error] with [ErrorNotSupported] if the driver cannot.
func (d *Driver) CancelKernels() error {
	c, err := d.checker("cancel")
	if err != nil {
		return err
	}
	c.Cancel()
	return nil
}

// CancelKernels ends the kernels that run on d now, so that its reset does not
// wait for them. It does nothing if the driver cannot. A reset that is given up
// is followed by KeepKernels, which has findings made of those that were ended.
func (d *Device) CancelKernels() {
	if c := driver.CheckerOf(d.drv.api); c != nil {
		c.CancelDevice(d.h)
	}
}

// KeepKernels is documented at CancelKernels.
func (d *Device) KeepKernels() {
	if c := driver.CheckerOf(d.drv.api); c != nil {
		c.KeepDevice(d.h)
	}
}

// InterruptKernels is CancelKernels for somebody who waits for them: what was
// ended is not reported later, but returned. It takes up to a second, and does
// nothing if no kernel runs, or if the driver cannot end one.
func (d *Driver) InterruptKernels() []string {
	c := driver.CheckerOf(d.api)
	if c == nil {
		return nil
	}
	return c.Interrupt(time.Second)
}

// NameNodes gives nodes names for the driver's reports. Executables have the
// names of the moment when they were made. It does nothing where the driver
// makes no reports.
func (c *Context) NameNodes(nodes []NodeHandle, names []string) {
	checker := driver.CheckerOf(c.drv.api)
	if checker == nil {
		return
	}
	handles := make([]driver.CUgraphNode, len(nodes))
	for i, n := range nodes {
		handles[i] = driver.CUgraphNode(n)
	}
	checker.NameNodes(handles, names)
}
