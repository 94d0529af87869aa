// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package api

// DriverName returns "nvidia" or "sim". It opens the driver.
func DriverName() (name string, err error) {
	defer contain(&err)
	d, err := from.Open()
	if err != nil {
		return "", err
	}
	return d.Name(), nil
}

// DriverVersion returns the CUDA version that the driver implements, as 12040
// for 12.4. It opens the driver.
func DriverVersion() (version int, err error) {
	defer contain(&err)
	d, err := from.Open()
	if err != nil {
		return 0, err
	}
	return d.Version(), nil
}

// DriverNotice says in one sentence why the simulated driver was chosen; it is
// empty where nothing has to be said. It opens the driver.
func DriverNotice() (notice string, err error) {
	defer contain(&err)
	d, err := from.Open()
	if err != nil {
		return "", err
	}
	return d.Notice(), nil
}

// DeviceCount returns the number of devices. It opens the driver.
func DeviceCount() (n int, err error) {
	defer contain(&err)
	d, err := from.Open()
	if err != nil {
		return 0, err
	}
	return d.DeviceCount(), nil
}
