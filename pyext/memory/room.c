/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

/* What the room adds to the module. */

static PyMethodDef functions[] = {
    {"_array_new", cudago_array_new, METH_VARARGS, NULL},
    {"_array_level", cudago_array_level, METH_VARARGS, NULL},
    {"_buffer_adopt", METHOD(cudago_buffer_adopt), METH_FASTCALL, NULL},
    {"_buffer_export", METHOD(cudago_buffer_export), METH_O, NULL},
    {"_buffer_import", cudago_buffer_import, METH_VARARGS, NULL},
    {"_buffer_attach", METHOD(cudago_buffer_attach), METH_FASTCALL, NULL},
    {"_set_allocated", cudago_set_allocated, METH_O, NULL},
    {"_all_buffers", cudago_buffers, METH_NOARGS, NULL},
    {"_set_dying", cudago_set_dying, METH_O, NULL},
    {"_largest", cudago_largest, METH_O, NULL},
    {"_give_late", cudago_give_late, METH_O, NULL},
    {"_given", METHOD(cudago_given), METH_FASTCALL, NULL},
    {"_device_new", cudago_device_new, METH_O, NULL},
    {"_peer_access", METHOD(cudago_peer_access), METH_FASTCALL, NULL},
    {"_external_import", METHOD(cudago_external_import), METH_FASTCALL, NULL},
    {"_pin", METHOD(cudago_pin), METH_FASTCALL, NULL},
    {"_files", cudago_files_numbers, METH_O, NULL},
    {"_files_own", cudago_files_take, METH_VARARGS, NULL},
    {"_files_copy", cudago_files_copy, METH_O, NULL},
    {"_files_join", cudago_files_join, METH_VARARGS, NULL},
    {"_files_close", cudago_files_close, METH_O, NULL},
    {"_files_in_memory", cudago_files_in_memory, METH_VARARGS, NULL},
    {"_pool_export", METHOD(cudago_pool_export), METH_O, NULL},
    {"_prefetch_batch", METHOD(cudago_prefetch_batch), METH_FASTCALL, NULL},
    {"_resource_default_pool", cudago_resource_default_pool, METH_VARARGS, NULL},
    {"_resource_pool", cudago_resource_pool, METH_VARARGS, NULL},
    {"_resource_host_pool", cudago_resource_host_pool, METH_VARARGS, NULL},
    {"_resource_pinned", cudago_resource_pinned, METH_O, NULL},
    {"_resource_imported", cudago_resource_imported, METH_VARARGS, NULL},
    {"_resource_managed", cudago_resource_managed, METH_VARARGS, NULL},
    {"_resource_python", cudago_resource_python, METH_O, NULL},
    {"_tallies", cudago_tallies, METH_O, NULL},
    {"_resource_virtual", cudago_resource_virtual, METH_VARARGS, NULL},
    {"_virtual_export", METHOD(cudago_virtual_export), METH_O, NULL},
    {"_virtual_import", cudago_virtual_import, METH_VARARGS, NULL},
    {0},
};

int cudago_memory_room(PyObject *module) {
    if (cudago_add_type(module, CLS_DEVICE, &cudago_device_spec) ||
        cudago_add_type(module, CLS_RESOURCE, &cudago_resource_spec) ||
        cudago_add_type(module, CLS_BUFFER, &cudago_buffer_spec) ||
        cudago_add_type(module, CLS_POINTER, &cudago_pointer_spec) ||
        cudago_add_type(module, CLS_EXTERNAL, &cudago_external_spec) ||
        cudago_add_type(module, CLS_ARRAY, &cudago_array_spec) ||
        cudago_add_type(module, CLS_MIPMAPPED, &cudago_mipmapped_spec)) return -1;
    return PyModule_AddFunctions(module, functions);
}
