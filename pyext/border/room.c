/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

/* What the room adds to the module. */

static PyMethodDef functions[] = {
    {"_set_class", cudago_set_class, METH_VARARGS, NULL},
    {"_set_closed_error", cudago_set_closed_error, METH_O, NULL},
    {"_open", cudago_open_driver, METH_NOARGS, NULL},
    {"_is_open", cudago_is_open, METH_NOARGS, NULL},
    {"_set_checks", cudago_set_checks, METH_O, NULL},
    {"_set_package", cudago_set_package, METH_VARARGS, NULL},
    {"_site", cudago_calling_site, METH_NOARGS, NULL},
    {"_record_sites", cudago_record_sites, METH_O, NULL},
    {"_objects_of", cudago_objects_of, METH_VARARGS, NULL},
    {"_call_aside", cudago_call_aside, METH_VARARGS, NULL},
    {"_locked", cudago_call_locked, METH_VARARGS, NULL},
    {"_take_reports", cudago_take_reports, METH_NOARGS, NULL},
    {"_cancel_kernels", cudago_cancel_kernels, METH_NOARGS, NULL},
    {"_fail_at_random", cudago_fail_at_random, METH_O, NULL},
    {"_fail_next", cudago_fail_next, METH_VARARGS, NULL},
    {"_as_another", cudago_as_another, METH_VARARGS, NULL},
    {"_faults", cudago_faults, METH_NOARGS, NULL},
    {"_panic", cudago_panic, METH_O, NULL},
    {"_reaper_flush", cudago_reaper_flush, METH_O, NULL},
    {"_watch_forks", cudago_watch_forks, METH_NOARGS, NULL},
    {0},
};

int cudago_border_room(PyObject *module) {
    return cudago_watch_fork() || cudago_block_type_init(module) ? -1 : PyModule_AddFunctions(module, functions);
}
