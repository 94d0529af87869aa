// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build cudagotest

package cuda

import (
	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/cuda/internal/driver/fault"
)

// With the build tag cudagotest every driver is wrapped so that calls can be made
// to fail, from tests of packages above this one too.

func init() {
	wrapForTest = func(api driver.API) driver.API { return fault.New(api) }
}

// FailCall makes the n-th call from now on, counted from 1, of the driver call
// with this name in cuda.h return r, once. An empty name means any call.
func (d *Driver) FailCall(call string, n int, r Result) {
	d.faults().Fail(seamName(call), n, driver.CUresult(r))
}

// ClearFaults discards the failures that have not happened yet. It reports
// whether there were any.
func (d *Driver) ClearFaults() bool { return d.faults().Clear() }

// CallCount returns how often a driver call was made. An empty name is any call.
func (d *Driver) CallCount(call string) int { return d.faults().Calls(seamName(call)) }

func (d *Driver) faults() *fault.Driver { return d.api.(*fault.Driver) }
