/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* What the room adds to the module. */

static PyMethodDef functions[] = {
    {"_graph_new", cudago_graph_new, METH_O, NULL},
    {"_replay", cudago_replay_new, METH_VARARGS, NULL},
    {"_tick", cudago_tick, METH_NOARGS, NULL},
    {"_set_watcher", cudago_set_watcher, METH_O, NULL},
    {"_watcher", cudago_get_watcher, METH_NOARGS, NULL},
    {"_graph_from_handle", METHOD(cudago_graph_from_handle), METH_FASTCALL, NULL},
    {"_capture", METHOD(cudago_capture_new), METH_FASTCALL, NULL},
    {"_invalidated", cudago_invalidated, METH_O, NULL},
    {"_captures_open", cudago_captures_are_open, METH_NOARGS, NULL},
    {"_capture_end", METHOD(cudago_capture_end), METH_FASTCALL, NULL},
    {0},
};

int cudago_graph_room(PyObject *module) {
    cudago_record = cudago_recording;
    cudago_captured_allocate = cudago_capture_allocate;
    cudago_captured_hold = cudago_capture_hold;
    if (cudago_add_type(module, CLS_GRAPH, &cudago_graph_spec) ||
        cudago_add_type(module, CLS_EXEC, &cudago_exec_spec) ||
        cudago_add_type(module, CLS_NODE, &cudago_node_spec) ||
        cudago_add_type(module, CLS_EXEC_NODE, &cudago_exec_node_spec) ||
        cudago_add_methods(CLS_BUFFER, cudago_buffer_frees) ||
        cudago_add_methods(CLS_STREAM, cudago_stream_callbacks) ||
        cudago_capture_type_init() || cudago_replay_type_init(module) || cudago_bound_type_init(module)) return -1;
    return PyModule_AddFunctions(module, functions);
}
