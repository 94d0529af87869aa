// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// checks is a set of checks that work is launched under.
type checks uint32

const (
	checkRaces         checks = 1 << iota // unordered accesses
	checkUninitialized                    // reads of unwritten memory
	checkHost                             // host accesses of memory that a stream may still write
	// checkCollect keeps findings for TakeReports only: no call fails.
	checkCollect

	checkAll = checkRaces | checkUninitialized | checkHost
)

var checkNames = []struct {
	name string
	flag checks
}{
	{"races", checkRaces}, {"uninitialized", checkUninitialized}, {"host", checkHost},
	{"all", checkAll}, {"collect", checkCollect},
}

func (c checks) String() string {
	var names []string
	for _, n := range checkNames {
		if n.flag != checkAll && c&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ",")
}

func parseChecks(names string) (checks, error) {
	var set checks
	for name := range strings.SplitSeq(names, ",") {
		if name == "" {
			continue
		}
		known := false
		for _, n := range checkNames {
			if n.name == name {
				set |= n.flag
				known = true
			}
		}
		if !known {
			return 0, fmt.Errorf("check must be races, uninitialized, host, collect or all, got %q", name)
		}
	}
	return set, nil
}

// checker is the simulator's state for its checks.
type checker struct {
	on atomic.Uint32 // checks for work that is launched now
	// frees counts frees that could leave a pointer dangling, so that a graph
	// launch costs only one load if there were none.
	frees atomic.Uint64

	order order

	mu      sync.Mutex
	reports []string       // guarded by mu; for TakeReports
	sites   map[int]string // guarded by mu; by OS thread, from NoteSite to the call
	noted   atomic.Int32   // how many sites there are
	buried  []*allocation  // guarded by mu; freed host memory, the latest last
	refused map[int]string // guarded by mu; by OS thread, from a refused launch to its FaultReport
	untold  atomic.Int32   // how many refusals there are
}

var _ driver.Checker = (*simulator)(nil)

func (k *checker) flags() checks { return checks(k.on.Load()) }

// SetChecks is documented at driver.Checker, as are the methods below.
func (d *simulator) SetChecks(names string) (was string, err error) {
	set, err := parseChecks(names)
	if err != nil {
		return "", err
	}
	before := checks(d.check.on.Swap(uint32(set)))
	if set&checkRaces != 0 && before&checkRaces == 0 {
		// While the check was off, nothing tracked the order.
		d.forgetTraces(d.check.order.reset())
	}
	return before.String(), nil
}

func (d *simulator) Checks() string { return d.check.flags().String() }

func (d *simulator) CheckNames() []string {
	var names []string
	for _, n := range checkNames {
		if n.flag&checkAll == n.flag && n.flag != checkAll {
			names = append(names, n.name)
		}
	}
	return names
}

func (d *simulator) TakeReports() []string {
	d.check.mu.Lock()
	defer d.check.mu.Unlock()
	taken := d.check.reports
	d.check.reports = nil
	return taken
}
