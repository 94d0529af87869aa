/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

/* Which line of the program is calling: the nearest frame that is not the package's own. A line is a number, whose text is
 * kept for good: so there are as many as there are lines that call, however often they do. */

int cudago_sites_on = 1; /* written with the GIL held */

static PyObject *package;    /* how the names of the package's own files begin */
static PyObject *generators; /* the file of contextlib, whose code calls generators of the package */

/* _set_package(directory, file): names, that of the directory with a slash at its end */
PyObject *cudago_set_package(PyObject *module, PyObject *names) {
    (void)module;
    PyObject *directory, *file;
    if (!PyArg_ParseTuple(names, "UU", &directory, &file)) return NULL;
    PyObject *was = package, *other = generators;
    package = NEW_REF(directory);
    generators = NEW_REF(file);
    Py_XDECREF(was);
    Py_XDECREF(other);
    Py_RETURN_NONE;
}

/* What calls were found to be. Finding a line is linear in the length of the code before it, and its text is to be made: so it
 * is done once for a place in a code object, of which this has only a weak reference. Guarded by the GIL. */
enum { SEEN = 1024,
       MAX_LINES = 1 << 20 }; /* code that is made as text can have lines without end */
static const uint32_t OWN = UINT32_MAX;        /* ask the frame below */
static const uint32_t LOADED = UINT32_MAX - 1; /* the same; but what a file says was made by no line */
typedef struct {
    PyObject *code; /* not a reference: it is alive if ref says so */
    PyObject *ref;
    long at;
    uint32_t line;
} call_site;
static call_site seen[SEEN];

static PyObject *numbers, *texts; /* a dict: number by text; a list: text by number - 1 */

static uint32_t enter_text(PyObject *text) {
    if (!numbers && !(numbers = PyDict_New())) return 0;
    if (!texts && !(texts = PyList_New(0))) return 0;
    PyObject *known = PyDict_GetItemWithError(numbers, text);
    if (known) return (uint32_t)PyLong_AsUnsignedLong(known);
    Py_ssize_t n = PyList_Size(texts);
    if (PyErr_Occurred() || n >= MAX_LINES) return 0;
    PyObject *number = PyLong_FromSsize_t(n + 1);
    int failed = !number || PyList_Append(texts, text) || PyDict_SetItem(numbers, text, number);
    Py_XDECREF(number);
    return failed ? 0 : (uint32_t)n + 1;
}

static uint32_t line_of(PyFrameObject *frame, PyObject *file) {
    int number = PyFrame_GetLineNumber(frame);
    PyObject *text = number > 0 ? PyUnicode_FromFormat("%U:%d", file, number) : NULL;
    uint32_t line = text ? enter_text(text) : 0;
    Py_XDECREF(text);
    return line;
}

static int ends_with(PyObject *file, const char *end) {
    PyObject *tail = PyUnicode_FromString(end);
    int ends = tail && PyUnicode_Tailmatch(file, tail, 0, PY_SSIZE_T_MAX, 1) == 1;
    Py_XDECREF(tail);
    return ends;
}

static uint32_t classify(PyFrameObject *frame, PyObject *file) {
    if (generators && PyUnicode_Compare(file, generators) == 0) return OWN;
    if (!package || PyUnicode_Tailmatch(file, package, 0, PY_SSIZE_T_MAX, -1) != 1) return line_of(frame, file);
    return ends_with(file, "/_graph_file/load.py") ? LOADED : OWN;
}

static uint32_t look(PyFrameObject *frame, PyObject *code, long at, call_site *s) {
    PyObject *file = PyObject_GetAttrString(code, "co_filename");
    uint32_t line = file ? classify(frame, file) : 0;
    Py_XDECREF(file);
    PyObject *ref = PyErr_Occurred() ? NULL : PyWeakref_NewRef(code, NULL);
    if (!ref) return line;
    Py_XDECREF(s->ref);
    *s = (call_site){code, ref, at, line};
    return line;
}

static long place_in(PyFrameObject *frame) {
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("f_lasti"))) return -1;
    PyObject *number = PyObject_GetAttr((PyObject *)frame, name);
    long at = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    return at;
}

static uint32_t of_frame(PyFrameObject *frame) {
    long at = place_in(frame);
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    call_site *s = &seen[(((uintptr_t)code >> 4) + (uintptr_t)at * 31) % SEEN];
    int known = s->code == code && s->at == at && s->ref && PyWeakref_GetObject(s->ref) == code;
    uint32_t line = known ? s->line : look(frame, code, at, s);
    Py_DECREF(code);
    return line;
}

static uint32_t of_frames(PyFrameObject *top, uint32_t through) {
    uint32_t line = of_frame(top);
    if (line < through) return line < LOADED ? line : 0;
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("f_back"))) return 0;
    PyObject *frame = PyObject_GetAttr((PyObject *)top, name);
    while (frame && frame != Py_None && (line = of_frame((PyFrameObject *)frame)) >= through) {
        PyObject *below = PyObject_GetAttr(frame, name);
        Py_DECREF(frame);
        frame = below;
    }
    Py_XDECREF(frame);
    return line < LOADED ? line : 0;
}

/* Python 3.11 may collect garbage wherever an object is made, and frames become objects here. Later ones do that between
 * two instructions of Python's only. */
static int hold_collector(void) { return Py_Version < 0x030C0000 && PyGC_Disable(); }

static uint32_t of_caller(uint32_t through) {
    int on = hold_collector();
    PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
    uint32_t line = frame ? of_frames(frame, through) : 0;
    if (PyErr_Occurred()) PyErr_Clear(), line = 0;
    if (on) PyGC_Enable();
    return line;
}

QUIET uint32_t cudago_site_find(void) {
    uint32_t line = of_caller(OWN);
    return line;
}
uint32_t cudago_site_of_call(void) { return of_caller(LOADED); }

PyObject *cudago_site_text(uint32_t line) {
    PyObject *text = line && texts ? PyList_GetItem(texts, (Py_ssize_t)line - 1) : NULL;
    return NEW_REF(text ? text : Py_None);
}

static const char *utf8_of(uint32_t line, Py_ssize_t *size) {
    int on = hold_collector(); /* a failure is an object */
    PyObject *text = line && texts ? PyList_GetItem(texts, (Py_ssize_t)line - 1) : NULL;
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, size) : NULL;
    if (PyErr_Occurred()) PyErr_Clear();
    if (on) PyGC_Enable();
    return utf8;
}

const char *cudago_site_utf8(uint32_t line, Py_ssize_t *size) {
    const char *utf8 = utf8_of(line, size);
    if (!utf8) *size = 0; /* 3.13 makes it -1 where it fails */
    return utf8 ? utf8 : "";
}

/* _site(): the line that calls the package; empty if none does */
PyObject *cudago_calling_site(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    uint32_t line = cudago_site_of_call();
    return line ? cudago_site_text(line) : PyUnicode_FromString("");
}

/* _record_sites(on): returns whether it was on; None leaves it as it is. */
PyObject *cudago_record_sites(PyObject *module, PyObject *on) {
    (void)module;
    CUDAGO_ENTER(NULL);
    int was = cudago_sites_on, is = on == Py_None ? was : PyObject_IsTrue(on);
    if (is < 0) return NULL;
    cudago_sites_on = is;
    return PyBool_FromLong(was);
}
