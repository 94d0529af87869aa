/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

/* Errors of arguments that do not go with their parameters: each says which, what was wanted and what came. */

typedef cudago_packing packing;

static const char *type_name(const cudago_param *p, char *out, size_t n) {
    static const char *const words[] = {"", "integer s", "integer u", "float f", "struct of ", "value b"};
    if (p->type == PARAM_BYTES) snprintf(out, n, "a struct of %u bytes", p->size);
    else if (p->type == PARAM_UINT && p->size == 8) snprintf(out, n, "a pointer or an integer u64");
    else snprintf(out, n, "%s %s%u", p->type == PARAM_FLOAT ? "a" : "an", words[p->type], p->size * 8);
    return out;
}

/* What the parameter is in C++; NULL if that is not known. */
static PyObject *type_in_source(packing *pk) {
    PyObject *types = PyObject_GetAttrString((PyObject *)pk->kernel, "parameter_types");
    int has = types && PyTuple_Check(types) && pk->index < PyTuple_Size(types);
    PyObject *type = has ? NEW_REF(PyTuple_GetItem(types, pk->index)) : NULL;
    Py_XDECREF(types);
    if (!type && cudago_forgive()) return NULL;
    return type;
}

/* p takes less than its size says. */
static int wrong_kind(packing *pk, const cudago_param *p, PyObject *arg) {
    static const char *const words[] = {
        [TAKES_MEMORY] = "a pointer: memory, an address or None",
        [TAKES_NUMBER] = "an integer, and no memory",
        [TAKES_TEXTURE] = "a Texture",
        [TAKES_SURFACE] = "a Surface",
        [TAKES_CONDITION] = "a condition of the graph",
    };
    const char *want = words[p->takes]; /* asking for the type runs Python, which may set the types of the parameters */
    PyObject *type = type_in_source(pk);
    if (!type && PyErr_Occurred()) return -1;
    PyObject *source = type ? PyUnicode_FromFormat(" (%S in its source)", type) : PyUnicode_FromString("");
    if (source)
        PyErr_Format(PyExc_TypeError, "parameter %d of kernel %U must be %s%U, got %R (%R)", pk->index, pk->kernel->name, want, source, arg,
                     (PyObject *)Py_TYPE(arg));
    Py_XDECREF(source);
    Py_XDECREF(type);
    return -1;
}

int cudago_wrong_argument(packing *pk, const cudago_param *p, PyObject *arg) {
    char want[64];
    if (cudago_is_slot(arg)) {
        snprintf(want, sizeof want, "parameter %d", pk->index);
        return cudago_refuse_slot(arg, want);
    }
    if (p->takes) return wrong_kind(pk, p, arg);
    PyErr_Format(PyExc_TypeError, "parameter %d of kernel %U must be %s, got %R (%R)", pk->index, pk->kernel->name,
                 type_name(p, want, sizeof want), arg, (PyObject *)Py_TYPE(arg));
    return -1;
}

static const char *element_name(uint8_t element) {
    static const char *const names[7][6] = {
        [kDLInt] = {"", "", "int16", "int32", "int64", ""},
        [kDLFloat] = {"", "", "float16", "float32", "float64", ""},
        [kDLBfloat] = {"", "", "bfloat16", "", "", ""},
        [kDLComplex] = {"", "", "", "", "complex64", "complex128"},
        [kDLBool] = {"", "bool", "", "", "", ""},
    };
    const char *name = element >> 4 < 7 && (element & 15) < 6 ? names[element >> 4][element & 15] : NULL;
    return name ? name : "";
}

/* What the argument says of its elements, or what is known of them. */
static PyObject *element_text(PyObject *arg, uint8_t element) {
    PyObject *dtype = PyObject_GetAttrString(arg, "dtype"), *text = dtype ? PyObject_Str(dtype) : NULL;
    Py_XDECREF(dtype);
    if (text || cudago_forgive()) return text;
    return PyUnicode_FromString(*element_name(element) ? element_name(element) : "another byte order, or no number");
}

int cudago_wrong_element(packing *pk, const cudago_param *p, PyObject *arg, uint8_t element) {
    uint8_t want = p->element; /* the argument's code may set the types of the parameters */
    PyObject *text = element_text(arg, element);
    if (!text) return -1;
    PyErr_Format(PyExc_TypeError,
                 "parameter %d of kernel %U points to %s%s by the kernel's source, got elements of type %U (%R): convert them, or "
                 "pass the memory without a type, as a Buffer; kernel.parameter_types says what is known, and can be set",
                 pk->index, pk->kernel->name, element_name(want), want >> 4 == kDLInt ? " or its unsigned twin" : "",
                 text, (PyObject *)Py_TYPE(arg));
    Py_DECREF(text);
    return -1;
}

int cudago_wrong_place(packing *pk, const cudago_param *p, PyObject *arg, uint64_t address, uint64_t nbytes) {
    int unit = p->unit, misaligned = (address & p->mask) != 0; /* asking for the type runs Python */
    PyObject *type = type_in_source(pk);
    if (!type && PyErr_Occurred()) return -1;
    char why[160];
    if (misaligned) snprintf(why, sizeof why, "its address must be a multiple of %d, got 0x%llx", p->mask + 1, (unsigned long long)address);
    else snprintf(why, sizeof why, "memory for it has %d bytes at least, which is one element, or none, got %llu", unit, (unsigned long long)nbytes);
    PyErr_Format(PyExc_ValueError, "parameter %d of kernel %U is %S in the kernel's source: %s (%R)", pk->index, pk->kernel->name,
                 type ? type : Py_None, why, (PyObject *)Py_TYPE(arg));
    Py_XDECREF(type);
    return -1;
}

/* Says of which parameter the error is. */
int cudago_wrong_layout(packing *pk) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_Format(type, "parameter %d of kernel %U: %S: pass a copy, x.contiguous(stream=s)", pk->index, pk->kernel->name, value ? value : Py_None);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

/* --- names ---------------------------------------------------------------------------------------------------------------- */

/* " (parameter 3 is n)", a new reference; NULL if the text does not begin with the number, or the name is not known. */
static PyObject *name_of(PyObject *text, KernelObject *kernel) {
    static const char begin[] = "parameter ";
    Py_ssize_t n;
    const char *utf8 = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &n) : NULL;
    if (!utf8 || strncmp(utf8, begin, sizeof begin - 1)) return NULL;
    char *end;
    long index = strtol(utf8 + sizeof begin - 1, &end, 10);
    PyObject *names = end > utf8 + sizeof begin - 1 ? PyObject_GetAttrString((PyObject *)kernel, "parameter_names") : NULL;
    int known = names && PyTuple_Check(names) && index >= 0 && index < PyTuple_Size(names);
    PyObject *name = known ? PyUnicode_FromFormat(" (parameter %ld is %U)", index, PyTuple_GetItem(names, index)) : NULL;
    Py_XDECREF(names);
    return name;
}

/* The arguments of an exception whose text has the name at its end, a new reference; NULL if there is none to add. */
static PyObject *named_arguments(PyObject *value, KernelObject *kernel) {
    PyObject *args = PyObject_GetAttrString(value, "args"), *made = NULL;
    PyObject *text = args && PyTuple_Check(args) && PyTuple_Size(args) == 1 ? PyTuple_GetItem(args, 0) : NULL;
    PyObject *name = name_of(text, kernel);
    if (name && !PyUnicode_Tailmatch(text, name, 0, PyUnicode_GetLength(text), 1)) made = Py_BuildValue("(N)", PyUnicode_Concat(text, name));
    Py_XDECREF(name);
    Py_XDECREF(args);
    return made;
}

int cudago_tell_parameter(KernelObject *kernel) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *args = value ? named_arguments(value, kernel) : NULL;
    if (args) PyObject_SetAttrString(value, "args", args);
    Py_XDECREF(args);
    if (!cudago_forgive()) return PyErr_Restore(type, value, trace), -1;
    Py_XDECREF(type); /* Ctrl-C comes first */
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

/* --- layouts -------------------------------------------------------------------------------------------------------------- */

/* Is the error, which stays, about the layout of an array of the host? */
static int has_gaps(PyObject *arg) {
    if (!PyErr_ExceptionMatches(PyExc_BufferError) || !PyObject_CheckBuffer(arg)) return 0;
    PyObject *type, *value, *trace;
    Py_buffer view;
    PyErr_Fetch(&type, &value, &trace);
    int gaps = 0;
    if (!PyObject_GetBuffer(arg, &view, PyBUF_RECORDS_RO)) {
        gaps = !PyBuffer_IsContiguous(&view, 'C');
        PyBuffer_Release(&view);
    }
    if (!cudago_forgive()) return PyErr_Restore(type, value, trace), gaps;
    Py_XDECREF(type); /* Ctrl-C comes first */
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return 0;
}

int cudago_wrong_host_layout(PyObject *arg, const char *what, PyObject *kernel) {
    if (!has_gaps(arg)) return -1;
    PyObject *of = kernel ? PyUnicode_FromFormat(" of kernel %U", kernel) : PyUnicode_FromString("");
    if (of)
        PyErr_Format(PyExc_BufferError,
                     "%s%U: the array has gaps between its elements or is not in row-major order: pass a copy, np.ascontiguousarray(x)", what, of);
    Py_XDECREF(of);
    return -1;
}

int cudago_raise_parameter_closed(packing *pk) {
    Py_ssize_t n;
    const char *name = PyUnicode_AsUTF8AndSize(pk->kernel->name, &n); /* C has used it before */
    char what[256];
    snprintf(what, sizeof what, "parameter %d of kernel %.200s", pk->index, name ? name : "?");
    return cudago_raise_closed_named(what);
}

/* The names of the parameters, where they are known, tell which are missing. */
int cudago_wrong_count(KernelObject *kernel, int want, Py_ssize_t got) {
    PyObject *names = PyObject_GetAttrString((PyObject *)kernel, "parameter_names");
    PyObject *comma = names && PyTuple_Check(names) && PyTuple_Size(names) ? PyUnicode_FromString(", ") : NULL;
    PyObject *text = comma ? PyUnicode_Join(comma, names) : NULL;
    int is_ours = !cudago_forgive(); /* otherwise it is Ctrl-C */
    if (is_ours && text) PyErr_Format(PyExc_TypeError, "kernel %U takes %d argument(s), got %zd; they are %U", kernel->name, want, got, text);
    else if (is_ours) PyErr_Format(PyExc_TypeError, "kernel %U takes %d argument(s), got %zd", kernel->name, want, got);
    Py_XDECREF(text);
    Py_XDECREF(comma);
    Py_XDECREF(names);
    return -1;
}
