// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package api

// A GraphMemory is the memory that a device has for the allocation nodes of graphs,
// in bytes.
type GraphMemory struct {
	Used, UsedHigh, Reserved, ReservedHigh uint64
}

// DeviceGraphMemory returns how much memory a device has for graphs. It makes the
// primary context, if nobody did.
func DeviceGraphMemory(ordinal int) (m *GraphMemory, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return nil, err
	}
	sizes, err := d.GraphMemory()
	if err != nil {
		return nil, err
	}
	return &GraphMemory{sizes.Used, sizes.UsedHigh, sizes.Reserved, sizes.ReservedHigh}, nil
}

// TrimGraphMemory gives back what a device has reserved for graphs and does not
// use. The result is true.
func TrimGraphMemory(ordinal int) (done bool, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return false, err
	}
	err = d.TrimGraphMemory()
	return err == nil, err
}

// ResetGraphMemoryHigh starts the maxima of a device's memory for graphs anew. The
// result is true.
func ResetGraphMemoryHigh(ordinal int) (done bool, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return false, err
	}
	err = d.ResetGraphMemoryHigh()
	return err == nil, err
}
