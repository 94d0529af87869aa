// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/memory"
)

// failure is a failure of queued work: the code that poisons the context, and
// the text for FaultReport.
type failure struct {
	code driver.CUresult
	text string
}

// faultCodes maps what the VM finds to what CUDA reports.
var faultCodes = map[fault.Kind]driver.CUresult{
	fault.IllegalAddress: driver.CUDA_ERROR_ILLEGAL_ADDRESS,
	fault.Misaligned:     driver.CUDA_ERROR_MISALIGNED_ADDRESS,
	fault.Illegal:        driver.CUDA_ERROR_ILLEGAL_INSTRUCTION,
	fault.Trap:           driver.CUDA_ERROR_LAUNCH_FAILED,
	fault.Assert:         driver.CUDA_ERROR_ASSERT,
	fault.Deadlock:       driver.CUDA_ERROR_LAUNCH_TIMEOUT,
	fault.Stack:          driver.CUDA_ERROR_HARDWARE_STACK_ERROR,
	fault.Budget:         driver.CUDA_ERROR_LAUNCH_TIMEOUT,
	fault.Canceled:       driver.CUDA_ERROR_DEINITIALIZED,
	fault.Internal:       driver.CUDA_ERROR_UNKNOWN,
}

// failureOf turns an error of the VM into a failure. A nil error is no failure.
func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	var stopped *fault.Fault
	if errors.As(err, &stopped) {
		return &failure{faultCodes[stopped.Kind], stopped.Error()}
	}
	var access *memory.AccessError
	if errors.As(err, &access) {
		return &failure{driver.CUDA_ERROR_ILLEGAL_ADDRESS, access.Error()}
	}
	var refused *ptxvm.LaunchError
	if errors.As(err, &refused) {
		return &failure{driver.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, refused.Error()}
	}
	return &failure{driver.CUDA_ERROR_UNKNOWN, err.Error()}
}

func (d *simulator) FaultReport(ctx driver.CUcontext) string {
	if text := d.check.refusal(); text != "" {
		return text
	}
	c := d.contexts.get(ctx)
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report == "" {
		return c.tell()
	}
	return c.report
}
