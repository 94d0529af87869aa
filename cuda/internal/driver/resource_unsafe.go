// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package driver

import "unsafe"

// Bytes returns a copy of the struct, for who keeps it as such.
func (r CUdevResource) Bytes() []byte {
	return append([]byte(nil), (*[unsafe.Sizeof(r)]byte)(unsafe.Pointer(&r))[:]...)
}

// ResourceOf undoes Bytes; false if b has another size.
func ResourceOf(b []byte) (r CUdevResource, ok bool) {
	to := (*[unsafe.Sizeof(r)]byte)(unsafe.Pointer(&r))
	if len(b) != len(to) {
		return r, false
	}
	copy(to[:], b)
	return r, true
}
