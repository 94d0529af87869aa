// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#include "dtype.h"

#include <string.h>

typedef struct {
    DLDataType d;
    const char *name, *typestr, *format;
} row;

static const row rows[] = {
    {{kDLBool, 8, 1}, "bool", "|b1", "?"},
    {{kDLInt, 8, 1}, "int8", "|i1", "b"},
    {{kDLInt, 16, 1}, "int16", "<i2", "h"},
    {{kDLInt, 32, 1}, "int32", "<i4", "i"},
    {{kDLInt, 64, 1}, "int64", "<i8", "q"},
    {{kDLUInt, 8, 1}, "uint8", "|u1", "B"},
    {{kDLUInt, 16, 1}, "uint16", "<u2", "H"},
    {{kDLUInt, 32, 1}, "uint32", "<u4", "I"},
    {{kDLUInt, 64, 1}, "uint64", "<u8", "Q"},
    {{kDLFloat, 16, 1}, "float16", "<f2", "e"},
    {{kDLFloat, 32, 1}, "float32", "<f4", "f"},
    {{kDLFloat, 64, 1}, "float64", "<f8", "d"},
    {{kDLComplex, 64, 1}, "complex64", "<c8", "Zf"},
    {{kDLComplex, 128, 1}, "complex128", "<c16", "Zd"},
    {{kDLComplex, 32, 1}, "complex32", NULL, NULL},
    {{kDLBfloat, 16, 1}, "bfloat16", NULL, NULL},
    {{kDLFloat8_e3m4, 8, 1}, "float8_e3m4", NULL, NULL},
    {{8, 8, 1}, "float8_e4m3", NULL, NULL},
    {{9, 8, 1}, "float8_e4m3b11fnuz", NULL, NULL},
    {{10, 8, 1}, "float8_e4m3fn", NULL, NULL},
    {{11, 8, 1}, "float8_e4m3fnuz", NULL, NULL},
    {{12, 8, 1}, "float8_e5m2", NULL, NULL},
    {{kDLFloat8_e5m2fnuz, 8, 1}, "float8_e5m2fnuz", NULL, NULL},
    {{kDLFloat8_e8m0fnu, 8, 1}, "float8_e8m0fnu", NULL, NULL},
    {{kDLFloat6_e2m3fn, 6, 1}, "float6_e2m3fn", NULL, NULL},
    {{kDLFloat6_e3m2fn, 6, 1}, "float6_e3m2fn", NULL, NULL},
    {{kDLFloat4_e2m1fn, 4, 1}, "float4_e2m1fn", NULL, NULL},
    {{kDLFloat4_e2m1fn, 4, 2}, "float4_e2m1fn_x2", NULL, NULL}, /* PyTorch's name for two in a byte */
};
enum { ROWS = sizeof rows / sizeof *rows };

static const row *find(DLDataType d) {
    for (int i = 0; i < ROWS; i++)
        if (!memcmp(&rows[i].d, &d, sizeof d)) return &rows[i];
    return NULL;
}

int cudago_dtype_parse(const char *name, DLDataType *out) {
    if (!strncmp(name, "torch.", 6)) name += 6;
    if (!strcmp(name, "?")) name = "|b1";
    int order = *name == '<' || *name == '|' || *name == '=';
    for (int i = 0; i < ROWS; i++) {
        const char *s = rows[i].typestr;
        if ((order || strcmp(name, rows[i].name)) && (!s || strcmp(name + order, s + 1))) continue;
        *out = rows[i].d;
        return 0;
    }
    return -1;
}

const char *cudago_dtype_name(DLDataType d) {
    const row *r = find(d);
    return r ? r->name : NULL;
}

const char *cudago_dtype_typestr(DLDataType d) {
    const row *r = find(d);
    return r ? r->typestr : NULL;
}

const char *cudago_dtype_format(DLDataType d) {
    const row *r = find(d);
    return r ? r->format : NULL;
}
