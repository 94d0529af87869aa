// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"

	"github.com/cudago/cudago/cuda/internal/driver"
	"github.com/cudago/cudago/internal/ptxvm"
)

// failure is a failure of queued work: the code that poisons the context, and
// the text for FaultReport.
type failure struct {
	code driver.CUresult
	text string
}

// faultCodes maps what the VM finds to what CUDA reports.
var faultCodes = map[ptxvm.FaultKind]driver.CUresult{
	ptxvm.FaultIllegalAddress: driver.CUDA_ERROR_ILLEGAL_ADDRESS,
	ptxvm.FaultMisaligned:     driver.CUDA_ERROR_MISALIGNED_ADDRESS,
	ptxvm.FaultIllegal:        driver.CUDA_ERROR_ILLEGAL_INSTRUCTION,
	ptxvm.FaultTrap:           driver.CUDA_ERROR_LAUNCH_FAILED,
	ptxvm.FaultAssert:         driver.CUDA_ERROR_ASSERT,
	ptxvm.FaultDeadlock:       driver.CUDA_ERROR_LAUNCH_TIMEOUT,
	ptxvm.FaultStack:          driver.CUDA_ERROR_HARDWARE_STACK_ERROR,
	ptxvm.FaultBudget:         driver.CUDA_ERROR_LAUNCH_TIMEOUT,
	ptxvm.FaultCanceled:       driver.CUDA_ERROR_DEINITIALIZED,
	ptxvm.FaultInternal:       driver.CUDA_ERROR_UNKNOWN,
}

// failureOf turns an error of the VM into a failure. A nil error is no failure.
func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	var fault *ptxvm.Fault
	if errors.As(err, &fault) {
		return &failure{faultCodes[fault.Kind], fault.Error()}
	}
	var access *ptxvm.AccessError
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
