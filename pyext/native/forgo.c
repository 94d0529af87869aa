/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

/* C for Go: a file with exported functions cannot define any. */

void cudago_call_host(uintptr_t fn, uintptr_t user_data) { ((void (*)(void *))fn)((void *)user_data); }

int64_t cudago_live_cells(void) {
    int64_t n = 0;
    for (uint32_t k = 0; k < CUDAGO_CELL_KINDS; k++) n += cudago_cells_live(k);
    return n;
}

uint32_t *cudago_drop_hint_address(void) { return (uint32_t *)&cudago_drop_hint; }
void cudago_incref(uintptr_t object) { Py_IncRef((PyObject *)object); }
