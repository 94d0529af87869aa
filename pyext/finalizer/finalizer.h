/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* finalizer.h: weakref.finalize's contract. */
#pragma once
#include "stream/stream.h"

int cudago_finalize_all(long limit_ms); /* at exit: runs finalizers; -1 with the exception that ended their run */
extern PyType_Spec cudago_finalizer_spec;
int cudago_finalizer_room(PyObject *module); /* -1 with an exception */
/* For Go. */
int cudago_finalizer_exit(uintptr_t finalizer); /* GIL */
void cudago_finalizer_due(uintptr_t finalizer, uint64_t id); /* GIL */
