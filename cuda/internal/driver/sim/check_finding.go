// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

const (
	mostReports = 1000 // kept for TakeReports; a program that has more is wrong enough
	mostTold    = 10   // told by one FaultReport
)

// findings are what checks found in a context's work and nobody was told.
type findings struct {
	untold atomic.Int32 // written with context.mu held
	texts  []string     // guarded by context.mu
	more   int          // guarded by context.mu; how many were too many for texts
	reset  []string     // guarded by context.mu; of kernels that were stopped for a reset
}

// found notes what a check has found. Unless the checks collect, the next call
// that waits fails with it.
func (c *context) found(text string, under checks) {
	c.sim.check.keep(text)
	if under&checkCollect != 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.findings.texts, text) {
		return
	}
	if len(c.findings.texts) < mostTold {
		c.findings.texts = append(c.findings.texts, text)
	} else {
		c.findings.more++
	}
	c.findings.untold.Add(1)
}

func (k *checker) keep(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.reports) < mostReports && !slices.Contains(k.reports, text) {
		k.reports = append(k.reports, text)
	}
}

// takeBack forgets what was kept of kernels that a reset of c has stopped: where
// that was interests nobody.
func (k *checker) takeBack(c *context) {
	c.mu.Lock()
	texts := c.findings.reset
	c.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reports = slices.DeleteFunc(k.reports, func(text string) bool { return slices.Contains(texts, text) })
}

// outcome is result for calls that wait: what checks found and nobody was told
// is an error of theirs. It stays untold until somebody asks for the report, so
// that a caller who drops the result does not lose it for the others.
func (c *context) outcome() driver.CUresult {
	r := c.result()
	if r == driver.CUDA_SUCCESS && c.findings.untold.Load() > 0 {
		return driver.CUDAGO_CHECK_FAILED
	}
	return r
}

// tell returns what checks found since the last time.
//
// Preconditions: c.mu must be locked.
func (c *context) tell() string {
	f := &c.findings
	text := strings.Join(f.texts, "\n")
	if f.more > 0 {
		text += fmt.Sprintf("\nand %d more", f.more)
	}
	f.texts, f.more = nil, 0
	f.untold.Store(0)
	return text
}
