// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import "github.com/cudago/cudago/cuda/internal/driver"

// GraphMemory says how much memory a device has for the allocation nodes of all
// graphs of the process, in bytes.
type GraphMemory struct {
	// Used is what graphs have mapped: from the first launch that allocates it
	// until its graph and executables are gone.
	Used, UsedHigh uint64
	// Reserved is what the driver holds for them.
	Reserved, ReservedHigh uint64
}

// GraphMemory calls cuDeviceGetGraphMemAttribute.
func (d *Device) GraphMemory() (GraphMemory, error) {
	var m GraphMemory
	c, err := d.Context()
	if err != nil {
		return m, err
	}
	for _, f := range []struct {
		attr driver.CUgraphMem_attribute
		to   *uint64
	}{
		{driver.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &m.Used},
		{driver.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &m.UsedHigh},
		{driver.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &m.Reserved},
		{driver.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &m.ReservedHigh},
	} {
		// Relaxed: captures of others might forbid it.
		d.drv.Relaxed(func() {
			*f.to, err = call1(c, "cuDeviceGetGraphMemAttribute", func(api driver.API) (uint64, driver.CUresult) {
				return api.CuDeviceGetGraphMemAttribute(d.h, f.attr)
			})
		})
		if err != nil {
			return GraphMemory{}, err
		}
	}
	return m, nil
}

// TrimGraphMemory gives back what is reserved and not used. It calls
// cuDeviceGraphMemTrim.
func (d *Device) TrimGraphMemory() error {
	c, err := d.Context()
	if err != nil {
		return err
	}
	// Relaxed: it may free memory, which captures of others would forbid.
	d.drv.Relaxed(func() {
		err = call0(c, "cuDeviceGraphMemTrim", func(api driver.API) driver.CUresult { return api.CuDeviceGraphMemTrim(d.h) })
	})
	return err
}

// ResetGraphMemoryHigh starts both maxima anew, from what there is now. It calls
// cuDeviceSetGraphMemAttribute.
func (d *Device) ResetGraphMemoryHigh() error {
	c, err := d.Context()
	if err != nil {
		return err
	}
	for _, attr := range []driver.CUgraphMem_attribute{driver.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, driver.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH} {
		d.drv.Relaxed(func() {
			err = call0(c, "cuDeviceSetGraphMemAttribute", func(api driver.API) driver.CUresult {
				return api.CuDeviceSetGraphMemAttribute(d.h, attr, 0)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
