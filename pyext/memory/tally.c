/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

/* A pool counts its memory itself. What is counted here has no pool; releases that have begun count as done. */

static struct {
    int64_t count, bytes, high;
} tallies[TALLIES];

QUIET void cudago_tally_add(int kind, int64_t count, int64_t bytes) {
    tallies[kind].count += count;
    tallies[kind].bytes += bytes;
    if (tallies[kind].bytes > tallies[kind].high) tallies[kind].high = tallies[kind].bytes;
}

/* _tallies(reset): (kind, allocations, bytes, most bytes) for each kind; then, if reset, the most bytes are what there is
 * now. */
PyObject *cudago_tallies(PyObject *module, PyObject *reset) {
    (void)module;
    CUDAGO_ENTER(NULL);
    static const char *const names[] = {"pinned", "registered", "managed", "virtual", "array"};
    int again = PyObject_IsTrue(reset);
    PyObject *list = again < 0 ? NULL : PyList_New(0);
    for (int i = 0; list && i < TALLIES; i++) {
        PyObject *row = Py_BuildValue("(sLLL)", names[i], (long long)tallies[i].count, (long long)tallies[i].bytes, (long long)tallies[i].high);
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
        if (again) tallies[i].high = tallies[i].bytes;
    }
    return list;
}
