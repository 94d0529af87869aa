// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package dlpack

/*
#include <stdlib.h>
#include "dtype.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// A DataType is an element type, in DLPack's terms. It is comparable; the zero
// value is no element type.
type DataType struct {
	Code  uint8  // kind of number; DLPack's DLDataTypeCode
	Bits  uint8  // width of one number
	Lanes uint16 // numbers per element; 1 but for PyTorch's packed FP4
}

// ParseDataType reads an element type's name: our own ("float32", "bfloat16"),
// NumPy's array-interface string ("<f4", "f4") or PyTorch's ("torch.float32").
//
// It fails for unknown types and for those in foreign byte order.
func ParseDataType(name string) (DataType, error) {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	var d C.DLDataType
	if C.cudago_dtype_parse(s, &d) != 0 {
		return DataType{}, fmt.Errorf("dlpack: element type %q is unknown or not in native byte order", name)
	}
	return DataType{uint8(d.code), uint8(d.bits), uint16(d.lanes)}, nil
}

func (d DataType) c() C.DLDataType {
	return C.DLDataType{code: C.uint8_t(d.Code), bits: C.uint8_t(d.Bits), lanes: C.uint16_t(d.Lanes)}
}

// String returns the name that [ParseDataType] reads, or the three numbers of a
// type that has none.
func (d DataType) String() string {
	if s := C.cudago_dtype_name(d.c()); s != nil {
		return C.GoString(s)
	}
	return fmt.Sprintf("DLDataType(%d, %d, %d)", d.Code, d.Bits, d.Lanes)
}

// TypeStr returns the string of NumPy's array interface ("<f4"), or "" if that
// protocol cannot express the type.
func (d DataType) TypeStr() string {
	if s := C.cudago_dtype_typestr(d.c()); s != nil {
		return C.GoString(s)
	}
	return ""
}

// Size returns the bytes of one element, or 0 for a type that is unknown or
// whose elements do not begin at whole bytes.
func (d DataType) Size() int64 { return int64(C.cudago_itemsize(d.c())) }
