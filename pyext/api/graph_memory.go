// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package api

// DeviceGraphMemory returns how many bytes a device has for the allocation nodes of
// graphs, as a JSON object with Used, UsedHigh, Reserved and ReservedHigh. It makes
// the primary context, if nobody did.
func DeviceGraphMemory(ordinal int) (sizes string, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return "", err
	}
	m, err := d.GraphMemory()
	if err != nil {
		return "", err
	}
	return object(m)
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
