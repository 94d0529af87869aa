/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

/* What the room adds to the module. */

static PyMethodDef functions[] = {
    {"launch", METHOD(cudago_launch), METH_FASTCALL | METH_KEYWORDS, DOC_LAUNCH},
    {"_set_slot", cudago_set_slot, METH_O, NULL},
    {"_no_slot", METHOD(cudago_no_slot), METH_FASTCALL, NULL},
    {"_set_condition", cudago_set_condition, METH_O, NULL},
    {"_copy_batch", METHOD(cudago_copy_batch), METH_FASTCALL, NULL},
    {"_copy_box", METHOD(cudago_copy_box), METH_FASTCALL, NULL},
    {"_operand", METHOD(cudago_operand_as), METH_FASTCALL, NULL},
    {"_signal", METHOD(cudago_stream_signal), METH_FASTCALL, NULL},
    {"_memop", METHOD(cudago_stream_memop), METH_FASTCALL, NULL},
    {"_compile", cudago_compile, METH_VARARGS, NULL},
    {"_link", cudago_link, METH_VARARGS, NULL},
    {"_code_cache", cudago_code_cache, METH_VARARGS, NULL},
    {"_code_from", cudago_code_from, METH_VARARGS, NULL},
    {"_code_from_state", cudago_code_from_state, METH_VARARGS, NULL},
    {"_code_data", cudago_code_data, METH_VARARGS, NULL},
    {"_code_variable", cudago_code_variable, METH_VARARGS, NULL},
    {"_kernel_new", cudago_kernel_new, METH_VARARGS, NULL},
    {"_config_new", cudago_config_new, METH_VARARGS, NULL},
    {"_tensor_map_new", cudago_tensor_map_new, METH_VARARGS, NULL},
    {"_array_texture_new", cudago_array_texture_new, METH_VARARGS, NULL},
    {"_surface_new", cudago_surface_new, METH_VARARGS, NULL},
    {"_texture_new", cudago_texture_new, METH_VARARGS, NULL},
    {0},
};

int cudago_kernel_room(PyObject *module) {
    if (cudago_add_type(module, CLS_CODE, &cudago_code_spec) ||
        cudago_add_type(module, CLS_KERNEL, &cudago_kernel_spec) ||
        cudago_add_type(module, CLS_CONFIG, &cudago_config_spec) ||
        cudago_add_type(module, CLS_OPERAND, &cudago_operand_spec) ||
        cudago_add_type(module, CLS_DESCRIPTOR, &cudago_descriptor_spec) ||
        cudago_add_methods(CLS_BUFFER, cudago_buffer_copies)) return -1;
    return PyModule_AddFunctions(module, functions);
}
