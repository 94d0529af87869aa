/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

#include "_cgo_export.h"

int cudago_wait(enum cudago_wait_kind kind, uint64_t id) {
    enum { SLICE_MS = 20 };
    cudago_status st = {0};
    uint64_t waiter;
    Py_BEGIN_ALLOW_THREADS
    waiter = cudagoWaitBegin((int)kind, id, &st);
    Py_END_ALLOW_THREADS
    for (int again = waiter != 0; again && !st.kind;) {
        Py_BEGIN_ALLOW_THREADS
        again = cudagoWaitSlice(waiter, SLICE_MS, &st);
        Py_END_ALLOW_THREADS
        if (again && !st.kind && PyErr_CheckSignals()) {
            cudagoWaitAbandon(waiter);
            return -1;
        }
    }
    return st.kind ? cudago_raise(&st) : 0;
}
