// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/cudago/cudago/cuda/internal/driver"
)

const (
	mostReports = 1000 // kept for TakeReports; more would not help
	mostTold    = 10   // in one FaultReport
)

// findings are the unreported findings in a context's work.
type findings struct {
	untold atomic.Int32 // written with context.mu held
	texts  []string     // guarded by context.mu
	more   int          // guarded by context.mu; how many did not fit into texts

	// Guarded by context.mu; of kernels stopped for a reset, which may be
	// abandoned. Calls that wait report them too.
	withheld []string

	// Kernels were stopped for a reset that is not abandoned: what comes behind them is
	// reached, and yet not done.
	stopped atomic.Bool
}

// found notes a finding. Unless the checks collect, the next call that waits
// fails with it.
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

// withhold keeps the report about a kernel that was stopped for a reset.
func (c *context) withhold(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.findings.stopped.Store(true)
	c.findings.withheld = append(c.findings.withheld, text+", for a reset of its device")
	c.findings.untold.Add(1)
}

// admit turns withheld reports into findings.
func (c *context) admit() {
	c.mu.Lock()
	c.findings.stopped.Store(false)
	texts := c.findings.withheld
	c.findings.withheld = nil
	c.mu.Unlock()
	for _, text := range texts {
		c.found(text, 0)
	}
}

func (k *checker) keep(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.reports) < mostReports && !slices.Contains(k.reports, text) {
		k.reports = append(k.reports, text)
	}
}

// refuse notes why this thread's call is refused. That is told to this thread
// alone: a finding would fail the waits of others, for work that never ran.
func (k *checker) refuse(text string) {
	k.keep(text)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refused == nil {
		k.refused = map[int]string{}
	}
	k.refused[syscall.Gettid()] = text
	k.untold.Store(int32(len(k.refused)))
}

// refusal returns why this thread's latest call was refused, once.
func (k *checker) refusal() string {
	if k.untold.Load() == 0 {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	tid := syscall.Gettid()
	text := k.refused[tid]
	delete(k.refused, tid)
	k.untold.Store(int32(len(k.refused)))
	return text
}

// outcome is result for calls that wait: they fail with unreported findings.
// These count as unreported until the report is read, so that a caller that
// drops the result does not lose them for others.
func (c *context) outcome() driver.CUresult {
	c.sim.check.refusal() // nobody asked: it is not what this call fails with
	r := c.result()
	if r == driver.CUDA_SUCCESS && c.findings.untold.Load() > 0 {
		return driver.CUDAGO_CHECK_FAILED
	}
	return r
}

// tell returns the findings since the last time.
//
// Preconditions: c.mu must be locked.
func (c *context) tell() string {
	f := &c.findings
	text := strings.Join(slices.Concat(f.texts, f.withheld), "\n")
	if f.more > 0 {
		text += fmt.Sprintf("\nand %d more", f.more)
	}
	f.texts, f.more, f.withheld = nil, 0, nil
	f.untold.Store(0)
	return text
}
