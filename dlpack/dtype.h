// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

/* dtype.h: element types by name. */
#pragma once
#include "exchange.h"

/* Reads a type's name: its own ("float32", "bfloat16"), NumPy's array-interface string ("<f4", "f4", "|b1", "?") or
 * PyTorch's ("torch.float32"). 0, or -1 for an unknown type or one in foreign byte order. */
int cudago_dtype_parse(const char *name, DLDataType *out);

/* The name, as static text; NULL for a type that cudago_dtype_parse would not return. */
const char *cudago_dtype_name(DLDataType d);

/* The array-interface string ("<f4"), static; NULL if that protocol cannot express the type. */
const char *cudago_dtype_typestr(DLDataType d);

/* The format of the buffer protocol ("f"), static; NULL if that protocol cannot express the type. */
const char *cudago_dtype_format(DLDataType d);
