// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/hex"
	"encoding/json"

	"github.com/cudago/cudago/cuda"
)

// A part is what JSON has of a partition.
type part struct {
	Resource string // CUdevResource, in hexadecimal
	SMCount  int
}

// DeviceSplit splits a device's multiprocessors into groups of at least count, at
// most groups of them (0 for as many as there can be). It returns them as a JSON
// array of objects with Resource and SMCount, and last what is left, with an
// SMCount of 0 if nothing is.
func DeviceSplit(ordinal, count, groups int, fine bool) (parts string, err error) {
	defer contain(&err)
	d, err := device(ordinal)
	if err != nil {
		return "", err
	}
	all, err := d.SMs()
	if err != nil {
		return "", err
	}
	made, rest, err := all.Split(cuda.SplitOptions{Count: count, Groups: groups, Fine: fine})
	if err != nil {
		return "", err
	}
	var list []part
	for _, p := range append(made, rest) {
		list = append(list, part{hex.EncodeToString(p.Bytes()), p.SMCount()})
	}
	text, err := json.Marshal(list)
	return string(text), err
}
