/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "xla.h"

/* What the room adds to the module. */

static PyMethodDef functions[] = {
    {"_xla_pack", cudago_xla_pack, METH_VARARGS, NULL},
    {"_xla_program", cudago_xla_program_new, METH_VARARGS, NULL},
    {"_xla_handler", cudago_xla_handler, METH_O, NULL},
    {0},
};

int cudago_xla_room(PyObject *module) { return PyModule_AddFunctions(module, functions); }
