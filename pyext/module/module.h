/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* module.h: the root, which knows all rooms. */
#pragma once
#include "border/border.h"

PyObject *cudago_shutdown(PyObject *module, PyObject *unused); /* exit.c */
int cudago_watch_exit(void);                                   /* -1 with an exception */
int64_t cudago_live_cells(void);
