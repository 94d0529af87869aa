/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"
#include "memory.h"
#include "tensor.h"

PyTypeObject *cudago_base[CLS_COUNT], *cudago_cls[CLS_COUNT];

void *cudago_alloc(enum cudago_class k) {
    return ((allocfunc)PyType_GetSlot(cudago_cls[k], Py_tp_alloc))(cudago_cls[k], 0);
}

void cudago_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF((PyObject *)type);
}

PyObject *cudago_context_enter(PyObject *self, PyObject *unused) {
    (void)unused;
    return NEW_REF(self);
}

int cudago_forgive(void) {
    if (!PyErr_Occurred()) return 0;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    PyErr_Clear();
    return 0;
}

int cudago_has(PyObject *o, const char *name) {
    PyObject *found = PyObject_GetAttrString(o, name);
    if (!found && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear(); /* PyObject_HasAttrString would clear whatever there is */
    Py_XDECREF(found);
    return found != NULL;
}

int cudago_which(cudago_keyword *known, int n, PyObject *name) {
    for (int i = 0; i < n; i++)
        if (known[i].interned == name) return i;
    for (int i = 0; i < n; i++) {
        if (PyUnicode_CompareWithASCIIString(name, known[i].text)) continue;
        if (!known[i].interned && !(known[i].interned = PyUnicode_InternFromString(known[i].text))) PyErr_Clear();
        return i;
    }
    return n;
}

int cudago_names_stream(PyObject *names) {
    static cudago_keyword stream = {"stream", NULL};
    if (!names || PyTuple_Size(names) != 1) return 0;
    PyObject *name = PyTuple_GetItem(names, 0);
    return name == stream.interned || !cudago_which(&stream, 1, name);
}

int cudago_raise_expected(PyObject *o, enum cudago_class k, const char *name) {
    PyObject *want = PyObject_GetAttrString((PyObject *)cudago_cls[k], "__name__");
    PyErr_Format(PyExc_TypeError, "%s must be a %S, not %R", name, want ? want : Py_None, (PyObject *)Py_TYPE(o));
    Py_XDECREF(want);
    return -1;
}

int cudago_int32(PyObject *o, const char *name, int32_t least, int32_t *out) {
    PyObject *number = PyNumber_Index(o);
    if (!number) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) PyErr_Format(PyExc_TypeError, "%s must be an int, not %R", name, o);
        return -1;
    }
    int overflow;
    long v = PyLong_AsLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow || v < least || v > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s must be %d to %d, got %S", name, least, INT32_MAX, o);
        return -1;
    }
    *out = (int32_t)v;
    return 0;
}

/* _set_class(name, cls): the public class of a native type, made by the Python face. */
static PyObject *set_class(PyObject *module, PyObject *args) {
    const char *name;
    PyObject *cls;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!", &name, &PyType_Type, &cls)) return NULL;
    static const char *const names[CLS_COUNT] = {"Device", "Stream", "Event", "MemoryResource", "Buffer",
                                                 "Pointer", "Handle", "Kernel", "LaunchConfig", "Operand",
                                                 "Graph", "GraphExec", "Finalizer"};
    for (int k = 0; k < CLS_COUNT; k++) {
        if (strcmp(name, names[k])) continue;
        if (!PyType_IsSubtype((PyTypeObject *)cls, cudago_base[k])) break;
        cudago_cls[k] = (PyTypeObject *)NEW_REF(cls);
        Py_RETURN_NONE;
    }
    return PyErr_Format(PyExc_ValueError, "no native type %s with that subclass", name);
}

/* --- the driver --------------------------------------------------------------------------------------------------- */

static int opened;

static void entry(void *to, const char *name) {
    uintptr_t p = cudagoEntryPoint((char *)name);
    if (p) memcpy(to, &p, sizeof p);
}

int cudago_open(void) {
    if (opened) return 0;
    PyObject *face = PyImport_ImportModule("cudago._driver");
    PyObject *options = face ? PyObject_CallMethod(face, "_options", NULL) : NULL;
    Py_XDECREF(face);
    const char *json = options ? PyUnicode_AsUTF8AndSize(options, NULL) : NULL;
    if (!json) return Py_XDECREF(options), -1;
    cudago_status st = {0};
    Py_BEGIN_ALLOW_THREADS
    cudagoOpen((char *)json, &st);
    Py_END_ALLOW_THREADS
    Py_DECREF(options);
    if (st.kind) return cudago_raise(&st);
    if (opened) return 0;
    cudago_trampolines(&cu);
#define ENTRY(call, raw) entry(&cu.call, #call);
    CUDAGO_CALLS(ENTRY)
#undef ENTRY
    opened = 1;
    cudago_checks_opened();
    face = PyImport_ImportModule("cudago._driver");
    PyObject *r = face ? PyObject_CallMethod(face, "_opened", NULL) : NULL;
    Py_XDECREF(face);
    Py_XDECREF(r);
    return r ? 0 : -1;
}

static PyObject *open_driver(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (cudago_open()) return NULL;
    Py_RETURN_NONE;
}
static PyObject *is_open(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyBool_FromLong(opened);
}

void cudago_warn_result(const char *operation, int32_t code) {
    PyObject *type, *value, *trace, *errors;
    if (cudago_result_is_sticky(code)) return; /* the device has failed for good, which was an error of its own */
    PyErr_Fetch(&type, &value, &trace);
    errors = PyImport_ImportModule("cudago.errors");
    PyObject *r = errors ? PyObject_CallMethod(errors, "_warn", "si", operation, (int)code) : NULL;
    if (!r && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_Clear(), PyErr_SetInterrupt(); /* again, later */
    if (!r && PyErr_Occurred()) PyErr_WriteUnraisable(NULL);
    Py_XDECREF(r);
    Py_XDECREF(errors);
    PyErr_Restore(type, value, trace);
}

int cudago_result_is_sticky(int32_t code) { return cudagoResultIsSticky(code); }
QUIET int cudago_result_persists(int32_t code) { return cudagoResultPersists(code); }

/* Is the host memory at address known to the driver: pinned, managed or registered? */
int cudago_host_known(uint64_t address) { return cudagoHostKnown(address); }

/* What device code printed, to Python's sys.stdout. */
int cudago_print_flush(void) {
    char *text = cudagoPrinted();
    if (!text) return 0;
    PyObject *out = PySys_GetObject("stdout"); /* borrowed */
    PyObject *s = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    free(text);
    PyObject *r = out && s && out != Py_None ? PyObject_CallMethod(out, "write", "O", s) : NULL;
    int bad = out && out != Py_None && !r;
    Py_XDECREF(r);
    Py_XDECREF(s);
    return bad ? -1 : 0;
}

/* The types, and what they hold, are of one interpreter: the main one, whichever imports first. */
static int in_main_interpreter(void) {
    int64_t id = PyInterpreterState_GetID(PyInterpreterState_Get());
    if (id == 0) return 1;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "cudago works in the main interpreter only");
    return 0;
}

/* For an interpreter that is given the module of the main one: PyInit__core is not called again. */
static PyObject *check_interpreter(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    if (!in_main_interpreter()) return NULL;
    Py_RETURN_NONE;
}

/* _panic(text): a panic in Go, for the test that it becomes an exception. */
static PyObject *panic(PyObject *module, PyObject *text) {
    (void)module;
    CUDAGO_ENTER(NULL);
    const char *t = PyUnicode_AsUTF8AndSize(text, NULL);
    if (!t) return NULL;
    cudago_status st = {0};
    cudagoPanic((char *)t, &st);
    return cudago_raise(&st), NULL;
}

static PyObject *drain(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudago_prove_all();
    cudago_drain();
    Py_RETURN_NONE;
}

/* _reaper_flush(ms): waits until nothing is left to be released; False when the time is over. */
static PyObject *reaper_flush(PyObject *module, PyObject *ms) {
    (void)module;
    CUDAGO_ENTER(NULL);
    long n = PyLong_AsLong(ms);
    if (n == -1 && PyErr_Occurred()) return NULL;
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = cudagoReaperFlush(n);
    Py_END_ALLOW_THREADS
    cudago_drain();
    return PyBool_FromLong(done);
}

static PyMethodDef functions[] = {
    {"launch", METHOD(cudago_launch), METH_FASTCALL, DOC_LAUNCH},
    {"_set_class", set_class, METH_VARARGS, NULL},
    {"_set_closed_error", cudago_set_closed_error, METH_O, NULL},
    {"_open", open_driver, METH_NOARGS, NULL},
    {"_is_open", is_open, METH_NOARGS, NULL},
    {"_device_new", cudago_device_new, METH_O, NULL},
    {"_stream_new", METHOD(cudago_stream_new), METH_FASTCALL, NULL},
    {"_stream_wrap", METHOD(cudago_stream_wrap), METH_FASTCALL, NULL},
    {"_event_new", METHOD(cudago_event_new), METH_FASTCALL, NULL},
    {"_peer_access", METHOD(cudago_peer_access), METH_FASTCALL, NULL},
    {"_pin", METHOD(cudago_pin), METH_FASTCALL, NULL},
    {"_resource_default_pool", cudago_resource_default_pool, METH_VARARGS, NULL},
    {"_resource_pool", cudago_resource_pool, METH_VARARGS, NULL},
    {"_resource_pinned", cudago_resource_pinned, METH_O, NULL},
    {"_resource_managed", cudago_resource_managed, METH_VARARGS, NULL},
    {"_resource_virtual", cudago_resource_virtual, METH_VARARGS, NULL},
    {"_compile", cudago_compile, METH_VARARGS, NULL},
    {"_code_from", cudago_code_from, METH_VARARGS, NULL},
    {"_code_data", cudago_code_data, METH_VARARGS, NULL},
    {"_kernel_new", cudago_kernel_new, METH_VARARGS, NULL},
    {"_config_new", cudago_config_new, METH_VARARGS, NULL},
    {"_graph_new", cudago_graph_new, METH_O, NULL},
    {"_capture", METHOD(cudago_capture_new), METH_FASTCALL, NULL},
    {"_capture_end", METHOD(cudago_capture_end), METH_FASTCALL, NULL},
    {"_collect_prove", METHOD(cudago_collect_prove), METH_FASTCALL, NULL},
    {"_set_checks", cudago_set_checks, METH_O, NULL},
    {"_set_package", cudago_set_package, METH_O, NULL},
    {"_take_reports", cudago_take_reports, METH_NOARGS, NULL},
    {"_cancel_kernels", cudago_cancel_kernels, METH_NOARGS, NULL},
    {"_fail_at_random", cudago_fail_at_random, METH_O, NULL},
    {"_fail_next", cudago_fail_next, METH_VARARGS, NULL},
    {"_faults", cudago_faults, METH_NOARGS, NULL},
    {"_panic", panic, METH_O, NULL},
    {"_drain", drain, METH_NOARGS, NULL},
    {"_reaper_flush", reaper_flush, METH_O, NULL},
    {"_shutdown", cudago_shutdown, METH_NOARGS, NULL},
    {"_watch_forks", cudago_watch_forks, METH_NOARGS, NULL},
    {"_after_fork", cudago_after_fork, METH_NOARGS, NULL},
    {"_check_interpreter", check_interpreter, METH_NOARGS, NULL},
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

int cudago_add_type(PyObject *module, enum cudago_class k, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    if (!type) return -1;
    cudago_base[k] = cudago_cls[k] = (PyTypeObject *)type;
    const char *name = strrchr(spec->name, '.') + 1;
    return PyModule_AddObject(module, name, NEW_REF(type));
}

PyMODINIT_FUNC PyInit__gobind(void) __attribute__((weak)); /* what gopy and pybindgen generated, in the same library */

extern PyType_Spec cudago_device_spec, cudago_stream_spec, cudago_event_spec, cudago_resource_spec, cudago_buffer_spec,
    cudago_pointer_spec, cudago_code_spec, cudago_kernel_spec, cudago_config_spec, cudago_operand_spec, cudago_graph_spec,
    cudago_exec_spec, cudago_finalizer_spec;

PyMODINIT_FUNC PyInit__core(void) {
    PyType_Spec *specs[CLS_COUNT] = {&cudago_device_spec, &cudago_stream_spec, &cudago_event_spec, &cudago_resource_spec,
                                     &cudago_buffer_spec, &cudago_pointer_spec, &cudago_code_spec, &cudago_kernel_spec,
                                     &cudago_config_spec, &cudago_operand_spec, &cudago_graph_spec, &cudago_exec_spec,
                                     &cudago_finalizer_spec};
    PyObject *m = in_main_interpreter() ? PyModule_Create(&definition) : NULL;
    if (!m) return NULL;
    for (int k = 0; k < CLS_COUNT; k++)
        if (cudago_add_type(m, (enum cudago_class)k, specs[k])) return NULL;
    if (cudago_tensor_module_init(m) || cudago_capture_type_init()) return NULL;
    if (PyModule_AddStringConstant(m, "__version__", cudagoVersion())) return NULL;
    if (PyInit__gobind) {
        PyObject *g = PyInit__gobind();
        if (!g || PyModule_AddObject(m, "_gobind", g)) return NULL;
    }
    if (cudago_watch_exit()) return NULL;
    cudago_cells_set_poke(cudago_request_drain);
    cudago_exchange_set_guard(cudago_keep_exception);
    return m;
}
