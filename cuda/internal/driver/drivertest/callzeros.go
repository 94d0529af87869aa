// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"reflect"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// CallWithZeros calls a method of a driver with zeros, and pointers to zeros.
func CallWithZeros(method reflect.Value) driver.CUresult {
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		in := method.Type().In(i)
		if in.Kind() == reflect.Pointer {
			args = append(args, reflect.New(in.Elem()))
		} else {
			args = append(args, reflect.Zero(in))
		}
	}
	out := method.Call(args)
	return driver.CUresult(out[len(out)-1].Int())
}
