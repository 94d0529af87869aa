// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package fault is a driver around a driver that makes calls fail, chosen ones or
// any at random: for tests of what happens then.
//
// A call that is made to fail does not reach the driver behind. The methods are
// generated from driver.API; there is one for every driver call.
package fault

import (
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// Driver implements driver.API on another driver. It is safe for concurrent
// use.
type Driver struct {
	driver.API

	mu     sync.Mutex
	rules  []rule         // guarded by mu
	odds   odds           // guarded by mu
	calls  map[string]int // guarded by mu; how often each was made
	failed map[string]int // guarded by mu; how often each was made to fail
}

// rule fails one call.
type rule struct {
	call   string // name in driver.API; empty: any
	skip   int    // calls of that name that are let through first
	result driver.CUresult
}

var (
	_ driver.API     = (*Driver)(nil)
	_ driver.Faulter = (*Driver)(nil)
)

// New returns a driver that does what api does, until told otherwise.
func New(api driver.API) *Driver {
	return &Driver{API: api, calls: map[string]int{}, failed: map[string]int{}}
}

// Fail makes the n-th call from now on, counted from 1, of the method with the
// given name, such as "CuStreamCreateWithPriority", return result, once. An
// empty name is any call. Of two faults that fall on one call, the later asked
// for hits the next call.
func (d *Driver) Fail(call string, n int, result driver.CUresult) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rules = append(d.rules, rule{call, n - 1, result})
}

// Clear forgets the faults that have not happened. It reports whether there
// were any.
func (d *Driver) Clear() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	had := len(d.rules) > 0
	d.rules = nil
	return had
}

// Calls returns how often the method with the given name was called, failed
// calls included. An empty name is any.
func (d *Driver) Calls(call string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[call]
}

// EntryPoint returns zero, so that callers in C come through here too.
func (d *Driver) EntryPoint(string) uintptr { return 0 }

// Unwrap returns the driver behind.
func (d *Driver) Unwrap() driver.API { return d.API }

// next notes a call and returns what it is to fail with.
func (d *Driver) next(call string) driver.CUresult {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[call]++
	d.calls[""]++
	result := d.asked(call)
	if result == driver.CUDA_SUCCESS {
		result = d.odds.draw(call, d.calls[call])
	}
	if result != driver.CUDA_SUCCESS {
		d.failed[call]++
	}
	return result
}

// asked returns what the rules have a call fail with.
//
// Preconditions: d.mu is held.
func (d *Driver) asked(call string) driver.CUresult {
	hit := -1
	for i := range d.rules {
		r := &d.rules[i]
		if r.call != "" && r.call != call {
			continue
		}
		if r.skip > 0 {
			r.skip--
		} else if hit < 0 {
			hit = i
		}
	}
	if hit < 0 {
		return driver.CUDA_SUCCESS
	}
	result := d.rules[hit].result
	d.rules = append(d.rules[:hit], d.rules[hit+1:]...)
	return result
}
