// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package api

import "encoding/json"

// LiveObjects counts what is held open for Python, as a JSON object from kinds
// to numbers: gopy would make a map a class of its own. Kinds with none are
// absent. It opens no driver.
func LiveObjects() (counts string, err error) {
	defer contain(&err)
	return object(from.LiveObjects())
}

// LiveStreams counts the streams that may have work: also closed ones, and
// default streams that nobody holds. It opens no driver.
func LiveStreams() (n int, err error) {
	defer contain(&err)
	return from.LiveStreams(), nil
}

// DriverObjects counts what the driver was asked to create and not yet asked to
// destroy, as LiveObjects does. It opens the driver.
func DriverObjects() (counts string, err error) {
	defer contain(&err)
	d, err := from.Open()
	if err != nil {
		return "", err
	}
	return object(d.Live())
}

func object(fields any) (string, error) {
	text, err := json.Marshal(fields)
	return string(text), err
}
