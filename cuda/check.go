// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"time"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// ErrorCheckFailed is returned by a call that waits if the driver's checks have
// found a defect in the program. It is not sticky: the defect did not stop the
// work. Only a driver with checks returns it.
const ErrorCheckFailed = Result(driver.CUDAGO_CHECK_FAILED)

var checkFailedText = resultText{"CUDAGO_CHECK_FAILED", "a check found a defect"}

// checker returns the checks of the driver.
//
// Errors: an [*Error] with [ErrorNotSupported] if the driver cannot.
func (d *Driver) checker(op string) (driver.Checker, error) {
	if c := d.checks; c != nil {
		return c, nil
	}
	return nil, &Error{Op: op, Result: ErrorNotSupported, Detail: "the driver " + d.Name() + " has no checks"}
}

// SetChecks switches on exactly the named checks for work queued from now on,
// and returns the names of those that were on before. Names are separated by
// commas; see [Driver.CheckNames]. "all" is all of them, "" none. With
// "collect" among them, findings make no call fail.
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
	if c := d.checks; c != nil {
		return c.Checks()
	}
	return ""
}

// CheckNames returns the names of the checks that the driver has.
func (d *Driver) CheckNames() []string {
	if c := d.checks; c != nil {
		return c.CheckNames()
	}
	return nil
}

// TakeReports returns the findings of checks since the last call, whether or
// not a call has failed with them.
func (d *Driver) TakeReports() []string {
	if c := d.checks; c != nil {
		reports := c.TakeReports()
		for i, report := range reports {
			reports[i] = ReadableText(report)
		}
		return reports
	}
	return nil
}

// NoteSite says which place in the program makes the next allocation, free or
// launch of this OS thread, for the reports of checks. It does nothing on a
// driver without checks.
func (d *Driver) NoteSite(site string) {
	if c := d.checks; c != nil {
		c.NoteSite(site)
	}
}

// HostAccess says that the host is about to use memory that the driver knows,
// for checks.
func (d *Driver) HostAccess(p uintptr, size uint64) {
	if c := d.checks; c != nil {
		c.HostAccess(p, size)
	}
}

// CancelKernels stops the kernels that are running. Their results are
// incomplete, which is reported like the finding of a check; their context
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

// CancelKernels stops the kernels that are running on d, so that its reset does
// not wait for them. It does nothing if the driver cannot. If the reset is
// abandoned, KeepKernels must follow, which reports the stopped kernels as
// findings.
func (d *Device) CancelKernels() {
	if c := d.drv.checks; c != nil {
		c.CancelDevice(d.h)
	}
}

// KeepKernels is documented at CancelKernels.
func (d *Device) KeepKernels() {
	if c := d.drv.checks; c != nil {
		c.KeepDevice(d.h)
	}
}

// InterruptKernels is CancelKernels for a caller that waits for them: the
// stopped kernels are returned instead of reported later. It takes up to a
// second, and does nothing if no kernel is running, or if the driver cannot
// stop one.
func (d *Driver) InterruptKernels() []string {
	c := d.checks
	if c == nil {
		return nil
	}
	return c.Interrupt(time.Second)
}

// NameNodes names nodes for the driver's reports. Executables keep the names
// that the nodes had when they were made. It does nothing if the driver makes
// no reports.
func (c *Context) NameNodes(nodes []NodeHandle, names []string) {
	checker := c.drv.checks
	if checker == nil {
		return
	}
	handles := make([]driver.CUgraphNode, len(nodes))
	for i, n := range nodes {
		handles[i] = driver.CUgraphNode(n)
	}
	checker.NameNodes(handles, names)
}
