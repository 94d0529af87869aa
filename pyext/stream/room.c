/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

/* What the room adds to the module. */

static PyMethodDef functions[] = {
    {"_stream_new", METHOD(cudago_stream_new), METH_FASTCALL, NULL},
    {"_stream_device", METHOD(cudago_stream_device), METH_O, NULL},
    {"_stream_wrap", METHOD(cudago_stream_wrap), METH_FASTCALL, NULL},
    {"_green_new", METHOD(cudago_green_new), METH_FASTCALL, NULL},
    {"_event_new", METHOD(cudago_event_new), METH_FASTCALL, NULL},
    {"_semaphore_import", METHOD(cudago_semaphore_import), METH_FASTCALL, NULL},
    {"_event_open", METHOD(cudago_event_open), METH_FASTCALL, NULL},
    {"_collect_prove", METHOD(cudago_collect_prove), METH_FASTCALL, NULL},
    {0},
};

int cudago_stream_room(PyObject *module) {
    if (cudago_add_type(module, CLS_STREAM, &cudago_stream_spec) ||
        cudago_add_type(module, CLS_EVENT, &cudago_event_spec) ||
        cudago_add_type(module, CLS_GREEN, &cudago_green_spec) ||
        cudago_add_type(module, CLS_SEMAPHORE, &cudago_semaphore_spec)) return -1;
    return PyModule_AddFunctions(module, functions);
}
