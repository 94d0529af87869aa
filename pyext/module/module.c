/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "module.h"

#include "_cgo_export.h"
#include "finalizer/finalizer.h"
#include "graph/graph.h"
#include "xla/xla.h"

/* The types and what they hold belong to one interpreter: the main one, whichever imports first. */
static int in_main_interpreter(void) {
    int64_t id = PyInterpreterState_GetID(PyInterpreterState_Get());
    if (id == 0) return 1;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "cudago works in the main interpreter only");
    return 0;
}

/* For an interpreter that is given the main one's module: PyInit__core is not called again. */
static PyObject *check_interpreter(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    if (!in_main_interpreter()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *drain(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudago_prove_all();
    cudago_drain();
    Py_RETURN_NONE;
}

/* For the half in Python, where it does something that would fail otherwise while the interpreter is ending. */
static PyObject *check_usable(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    CUDAGO_ENTER(NULL);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_drain", drain, METH_NOARGS, NULL},
    {"_shutdown", cudago_shutdown, METH_NOARGS, NULL},
    {"_check_interpreter", check_interpreter, METH_NOARGS, NULL},
    {"_check_usable", check_usable, METH_NOARGS, NULL},
    {0},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "cudago._core",
    "cudago's native half.",
    -1,
    functions,
    NULL,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__gobind(void) __attribute__((weak)); /* what gopy and pybindgen generated, in the same library */

/* The later rooms' part of a drain. */
static void drain_rest(void) {
    cudago_free_put_off();
    cudago_streams_sweep();
    cudago_captures_end_orphans();
    cudago_kept_sweep();
    cudago_xla_sweep();
}

/* Nothing of the module may reach such an interpreter, which has another shape of objects. It loads the module all the same
 * where a program gives it the file: the package is asked before. */
static int is_free_threaded(void) {
    PyObject *flags = PySys_GetObject("abiflags");
    return flags && PyUnicode_FindChar(flags, 't', 0, PyUnicode_GetLength(flags), 1) >= 0;
}

int64_t cudago_live_cells(void) {
    int64_t n = 0;
    for (uint32_t k = 0; k < CUDAGO_CELL_KINDS; k++) n += cudago_cells_live(k);
    return n;
}

PyMODINIT_FUNC PyInit__core(void) {
    if (is_free_threaded()) {
        PyErr_SetString(PyExc_ImportError, "cudago needs a Python with the GIL, and this is a free-threaded one");
        return NULL;
    }
    const char *version = cudagoVersion(); /* waits until Go has started */
    cudago_show_variables();
    PyObject *m = in_main_interpreter() ? PyModule_Create(&definition) : NULL;
    if (!m) return NULL;
    if (cudago_border_room(m) || cudago_stream_room(m) || cudago_memory_room(m) || cudago_tensor_room(m) ||
        cudago_kernel_room(m) || cudago_graph_room(m) || cudago_xla_room(m) || cudago_finalizer_room(m))
        return NULL;
    if (PyModule_AddStringConstant(m, "__version__", version)) return NULL;
    if (PyInit__gobind) {
        PyObject *g = PyInit__gobind();
        if (!g || cudago_guard_gopy(g) || PyModule_AddObject(m, "_gobind", g)) return NULL;
    }
    if (cudago_watch_exit()) return NULL;
    cudago_drain_rest = drain_rest;
    cudago_cells_set_poke(cudago_request_drain);
    cudago_exchange_set_guard(cudago_keep_exception);
    cudago_cells_set_uses_end(cudago_uses_free_some);
    return m;
}
