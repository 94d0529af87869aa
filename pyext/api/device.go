// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cudago/cudago/cuda"
)

// DeviceUUID returns what identifies a device across processes, as nvidia-smi
// prints it without "GPU-".
func DeviceUUID(ordinal int) (uuid string, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return "", err
	}
	u, err := d.UUID()
	return u.String(), err
}

// DevicePCIBusID returns a device's PCI address, as "0000:3b:00.0".
func DevicePCIBusID(ordinal int) (bus string, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return "", err
	}
	return d.PCIBusID()
}

// DeviceTotalMemory returns the size of a device's memory, in bytes.
func DeviceTotalMemory(ordinal int) (size uint64, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	return d.TotalMemory()
}

// DeviceName returns a device's product name.
func DeviceName(ordinal int) (name string, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return "", err
	}
	return d.Name()
}

// DeviceFreeMemory asks a device for its free memory, in bytes. It makes the
// primary context, if nobody did.
func DeviceFreeMemory(ordinal int) (size uint64, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	size, _, err = d.MemInfo()
	return size, err
}

// DevicePriorityRange returns the priorities that a device's streams can have, as
// a JSON object with Least and Greatest: greatest is the lower number. It makes the
// primary context, if nobody did.
func DevicePriorityRange(ordinal int) (limits string, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return "", err
	}
	c, err := d.Context()
	if err != nil {
		return "", err
	}
	least, greatest, err := c.StreamPriorityRange()
	if err != nil {
		return "", err
	}
	return object(map[string]int{"Least": least, "Greatest": greatest})
}

// BufferID returns the number of the allocation that an address is in, or 0. It
// makes the device's primary context, if nobody did.
func BufferID(ordinal int, address uint64) (id uint64, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	c, err := d.Context()
	if err != nil {
		return 0, err
	}
	return c.BufferID(address)
}

// DeviceLimit returns one of a device's limits, by its number in enum CUlimit. It
// makes the primary context, if nobody did.
func DeviceLimit(ordinal, limit int) (value int, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	n, err := d.Limit(cuda.Limit(limit))
	if err != nil {
		return 0, err
	}
	return int(n), nil
}

// SetDeviceLimit asks for one of a device's limits, and returns what the driver
// has made of it.
func SetDeviceLimit(ordinal, limit, value int) (result int, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	if err := d.SetLimit(cuda.Limit(limit), uint64(value)); err != nil {
		return 0, err
	}
	return DeviceLimit(ordinal, limit)
}

// Profile has a profiler that waits for this begin to collect, or end. It
// returns on.
func Profile(ordinal int, on bool) (collects bool, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return false, err
	}
	if on {
		return on, d.StartProfiler()
	}
	return on, d.StopProfiler()
}

// The names are sorted, so that an index means the same name for the life of
// the process.
var (
	attributes     = cuda.AttributeNames()
	attributeNames = slices.Sorted(maps.Keys(attributes))
)

// AttributeCount returns how many device attributes this version knows.
func AttributeCount() int { return len(attributeNames) }

// AttributeName returns the name of the i-th attribute, in alphabetic order:
// "multiprocessor_count". It is empty outside 0 to AttributeCount-1.
func AttributeName(i int) string {
	if i < 0 || i >= len(attributeNames) {
		return ""
	}
	return attributeNames[i]
}

// DeviceAttribute returns one attribute of a device by its name.
func DeviceAttribute(ordinal int, name string) (value int, err error) {
	defer contain(&err)
	a, ok := attributes[name]
	if !ok {
		return 0, &cuda.ArgumentError{Kind: cuda.WrongValue, Arg: "name", Text: fmt.Sprintf("is no device attribute: %q", name)}
	}
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	return d.Attribute(a)
}
