// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"

	"github.com/cudago/cudago/cuda/internal/driver"
)

func (d *simulator) CuGraphKernelNodeGetAttribute(h driver.CUgraphNode, id driver.CUlaunchAttributeID) (v driver.CUlaunchAttributeValue, r driver.CUresult) {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	_, w, r := workOf[*kernelWork](d, h)
	if r != driver.CUDA_SUCCESS {
		return v, r
	}
	switch id {
	case driver.CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		if w.cooperative {
			v.Value[0] = 1
		}
	case driver.CU_LAUNCH_ATTRIBUTE_PRIORITY:
		binary.LittleEndian.PutUint32(v.Value[:], uint32(w.priority))
	default: // hints and clusters, which are not kept
		return v, new(kernelWork).attribute(id, &v.Value)
	}
	return v, r
}

// CuGraphKernelNodeSetAttribute gives the node new work: executables run the old.
func (d *simulator) CuGraphKernelNodeSetAttribute(h driver.CUgraphNode, id driver.CUlaunchAttributeID, value *driver.CUlaunchAttributeValue) driver.CUresult {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	n, old, r := workOf[*kernelWork](d, h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if value == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	w := *old
	if r := w.attribute(id, &value.Value); r != driver.CUDA_SUCCESS {
		return r
	}
	if r := w.check(); r != driver.CUDA_SUCCESS {
		return r
	}
	n.work = &w
	return r
}
