// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

PyObject *cudago_name_dlpack, *cudago_name_dlpack_device;

/* The order of an import: look, check, make everything that can fail, rename the capsule, take over. An error before
 * the renaming leaves the tensor to the capsule's own destructor; after it nothing can fail. So the deleter always runs
 * exactly once. */

int cudago_import_refuse(const char *why, const DLTensor *d) {
    char text[400];
    cudago_tensor_text(d, text, sizeof text);
    PyErr_Format(PyExc_BufferError, "the tensor cannot be imported: %s: it has %s", why, text);
    return -1;
}

static int check_versioned(const DLManagedTensorVersioned *m, cudago_extent *e) {
    if (m->version.major != DLPACK_MAJOR_VERSION) {
        PyErr_Format(PyExc_BufferError, "the tensor cannot be imported: its DLPack version is %u.%u, ours 1.x",
                     m->version.major, m->version.minor);
        return -1;
    }
    const char *wrong = cudago_tensor_check(&m->dl_tensor, m->flags, e);
    if (wrong) return cudago_import_refuse(wrong, &m->dl_tensor);
    /* Each of our element types has one layout, and it is not the padded one. */
    if (m->dl_tensor.dtype.bits < 8 && m->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED)
        return cudago_import_refuse("its elements of less than a byte are padded, not packed", &m->dl_tensor);
    return 0;
}

/* --- capsules ----------------------------------------------------------------------------------------------------------- */

cudago_cell *cudago_capsule_take(PyObject *capsule, DLTensor *out, cudago_extent *e, cudago_peer *peer) {
    cudago_cell *c;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        DLManagedTensorVersioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (check_versioned(m, e)) return NULL;
        if (!(c = cudago_foreign_new())) return (cudago_cell *)PyErr_NoMemory();
        if (PyCapsule_SetName(capsule, "used_dltensor_versioned")) return cudago_cell_release_gil(c), NULL;
        cudago_foreign_take(c, m, e, &peer->ways[CUDAGO_WAY_CAPSULE]);
        *out = m->dl_tensor;
        return c;
    }
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        DLManagedTensor *m = PyCapsule_GetPointer(capsule, "dltensor");
        const char *wrong = cudago_tensor_check(&m->dl_tensor, 0, e);
        if (wrong) return cudago_import_refuse(wrong, &m->dl_tensor), NULL;
        if (!(c = cudago_foreign_new())) return (cudago_cell *)PyErr_NoMemory();
        if (PyCapsule_SetName(capsule, "used_dltensor")) return cudago_cell_release_gil(c), NULL;
        cudago_foreign_take_legacy(c, m, e, &peer->ways[CUDAGO_WAY_LEGACY]);
        *out = m->dl_tensor;
        return c;
    }
    const char *name = PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : NULL;
    PyErr_Clear();
    if (name && !strncmp(name, "used_dltensor", 13))
        PyErr_SetString(PyExc_BufferError, "the tensor cannot be imported: its capsule was consumed before");
    else PyErr_Format(PyExc_TypeError, "__dlpack__ must give a DLPack capsule, got %R", capsule);
    return NULL;
}

/* --- Tensors from managed tensors ---------------------------------------------------------------------------------------- */

/* Our own memory that is described here, unless a reset of its device, which may be under way, takes it. */
static cudago_cell *own_memory(const DLTensor *d, const cudago_extent *e, uint64_t *ptr) {
    uint64_t at;
    cudago_cell *own = cudago_exported_find(d, e, &at);
    if (!own) return NULL;
    if (cudago_cell_lost(own)) {
        cudago_cell_release(own);
        return NULL;
    }
    *ptr = at;
    return own;
}

/* Strides of dimensions of size 1 mean nothing, and producers write anything there: they become those of a row-major
 * tensor, as in our exports. A row-major tensor gets all its strides so. */
static void canonical_strides(TensorObject *t) {
    int64_t next = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->shape[i] < 2) t->strides[i] = next;
        else next = cudago_product(next, t->shape[i]);
    }
}

void cudago_tensor_adopt(TensorObject *t, cudago_cell *c, const DLTensor *d, const cudago_extent *e) {
    uint64_t ptr = (uint64_t)(uintptr_t)d->data + d->byte_offset;
    cudago_cell *own = own_memory(d, e, &ptr);
    if (own) t->theirs = c; /* another library may do with its tensor what it likes, once that is given back */
    cudago_tensor_set(t, own ? own : c, ptr, d->dtype, d->shape, e->compact ? NULL : d->strides);
    if (c->flags & CUDAGO_CELL_READONLY) t->flags |= TENSOR_READONLY;
    if (!e->compact) canonical_strides(t);
}

PyObject *cudago_tensor_import(DLManagedTensorVersioned *m, cudago_peer *peer) {
    cudago_extent e = {0};
    if (check_versioned(m, &e)) return NULL;
    TensorObject *t = cudago_tensor_alloc(m->dl_tensor.ndim);
    if (!t) return NULL;
    cudago_cell *c = cudago_foreign_new();
    if (!c) {
        Py_DECREF(t);
        return PyErr_NoMemory();
    }
    cudago_foreign_take(c, m, &e, &peer->ways[CUDAGO_WAY_TABLE]);
    cudago_tensor_adopt(t, c, &m->dl_tensor, &e);
    t->origin = ORIGIN_TABLE;
    return (PyObject *)t;
}

static PyObject *import_capsule(PyObject *capsule, cudago_peer *peer) {
    DLTensor d;
    cudago_extent e = {0};
    int legacy = PyCapsule_IsValid(capsule, "dltensor");
    cudago_cell *c = cudago_capsule_take(capsule, &d, &e, peer);
    if (!c) return NULL;
    TensorObject *t = cudago_tensor_alloc(d.ndim);
    if (!t) return cudago_cell_let_go(c), NULL;
    cudago_tensor_adopt(t, c, &d, &e);
    t->origin = legacy ? ORIGIN_LEGACY : ORIGIN_CAPSULE;
    return (PyObject *)t;
}

/* --- asking a producer ---------------------------------------------------------------------------------------------------- */

/* 1 if the object says it is on a CUDA device, 0 if not, -1 with an exception. */
static int on_cuda(PyObject *o) {
    PyObject *d = PyObject_CallMethodObjArgs(o, cudago_name_dlpack_device, NULL);
    if (!d) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%R has no __dlpack_device__", (PyObject *)Py_TYPE(o));
        return -1;
    }
    long type = PyTuple_Check(d) && PyTuple_Size(d) == 2 ? PyLong_AsLong(PyTuple_GetItem(d, 0)) : -1;
    if (type == -1 && !cudago_forgive())
        PyErr_Format(PyExc_TypeError, "__dlpack_device__ must give a tuple of two ints, got %R", d);
    Py_DECREF(d);
    return type == -1 ? -1 : type == kDLCUDA || type == kDLCUDAManaged;
}

static int put(PyObject *dict, const char *key, PyObject *value) {
    int r = value ? PyDict_SetItemString(dict, key, value) : -1;
    Py_XDECREF(value);
    return r;
}

/* Appends " WORD VALUE" of an attribute, unless asking for it fails: what cannot be exported may not have it. -1 with an
 * exception that ends the program. */
static int add_fact(char *out, size_t room, const char *word, PyObject *o, const char *name) {
    size_t n = strlen(out);
    PyObject *value = PyObject_GetAttrString(o, name), *text = value ? PyObject_Str(value) : NULL;
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (utf8) snprintf(out + n, room - n, "%s %s %.80s", n ? "," : ": it has", word, utf8);
    int r = cudago_forgive();
    Py_XDECREF(text);
    Py_XDECREF(value);
    return r;
}

/* What o's library said becomes the cause of a BufferError that also says what o is; its first line tells the reason, the
 * rest may be a stack. */
static int refused(PyObject *o) {
    PyObject *type, *value, *trace, *more;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    PyObject *text = PyObject_Str(value);
    const char *why = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    char line[400], facts[300] = "";
    snprintf(line, sizeof line, "%.*s", why ? (int)strcspn(why, "\n") : 0, why ? why : "");
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    if (cudago_forgive() || add_fact(facts, sizeof facts, "shape", o, "shape") || add_fact(facts, sizeof facts, "type", o, "dtype") ||
        add_fact(facts, sizeof facts, "device", o, "device"))
        return Py_DECREF(value), -1;
    PyErr_Format(PyExc_BufferError, "the tensor cannot be imported: %R does not export it: %s%s", (PyObject *)Py_TYPE(o), line, facts);
    PyErr_Fetch(&type, &more, &trace);
    PyErr_NormalizeException(&type, &more, &trace);
    PyException_SetCause(more, value); /* takes value over */
    PyErr_Restore(type, more, trace);
    return -1;
}

/* A table says RuntimeError where __dlpack__ says BufferError. */
int cudago_import_refused(PyObject *o) { return PyErr_ExceptionMatches(PyExc_RuntimeError) ? refused(o) : -1; }

/* Calls o.__dlpack__ with the keywords that it may understand. A producer from before DLPack 1.0 raises TypeError for
 * the new keywords and is called again without them; a producer that is asked for a copy and cannot make one must say
 * so itself. */
static PyObject *ask(PyObject *o, intptr_t stream, PyObject *copy) {
    int cuda = on_cuda(o);
    if (cuda < 0) return NULL;
    PyObject *method = PyObject_GetAttr(o, cudago_name_dlpack), *none = PyTuple_New(0), *words = PyDict_New(), *r = NULL;
    if (method && none && words && (!cuda || !put(words, "stream", PyLong_FromLongLong(stream))) &&
        !put(words, "max_version", Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION)) &&
        (copy == Py_None || !put(words, "copy", NEW_REF(copy)))) {
        r = PyObject_Call(method, none, words);
        if (!r && copy != Py_True && PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            PyDict_DelItemString(words, "max_version");
            if (copy != Py_None) PyDict_DelItemString(words, "copy");
            r = PyObject_Call(method, none, words);
        }
    }
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(words);
    if (!r && PyErr_Occurred() == PyExc_BufferError) refused(o);
    return r;
}

/* Makes the consumer's stream, of which -1 is none, wait for what the producer has queued. 1 if it had to, which may have
 * released the GIL; 0 if there was nothing to do; -1 with an exception. */
int cudago_import_order(const DLPackExchangeAPI *api, DLDevice device, intptr_t stream) {
    void *theirs = NULL;
    if (device.device_type == kDLCPU || stream == -1) return 0;
    if (api->current_work_stream(device.device_type, device.device_id, &theirs)) return -1;
    if (stream == (theirs ? (intptr_t)theirs : 1)) return 0;
    return cudago_order_foreign(device.device_id, theirs ? (uintptr_t)theirs : 1, (uintptr_t)stream) ? -1 : 1;
}

/* The managed tensor of an object with an exchange table, if the table may be used: it skips checks that __dlpack__
 * makes. *m NULL without an error: use __dlpack__. */
static int through_table(const DLPackExchangeAPI *api, PyObject *o, intptr_t stream, DLManagedTensorVersioned **m) {
    *m = NULL;
    if (api->managed_tensor_from_py_object_no_sync(o, m)) return cudago_import_refused(o);
    const DLTensor *d = &(*m)->dl_tensor;
    if ((*m)->version.major != DLPACK_MAJOR_VERSION) return 0; /* the import refuses it with a better message */
    /* A complex tensor of PyTorch may be conjugated lazily, and only __dlpack__ refuses that. */
    int complex = d->dtype.code == kDLComplex, failed = !complex && cudago_import_order(api, d->device, stream) < 0;
    if (!complex && !failed) return 0;
    cudago_dl_delete(*m);
    *m = NULL;
    return failed ? -1 : 0;
}

/* --- the ways of an import ------------------------------------------------------------------------------------------------ */

/* 0: use __dlpack__ */
static int import_lent(PyObject *o, const cudago_producer *p, intptr_t stream, PyObject **made) {
    DLTensor d;
    cudago_extent e;
    cudago_cell *c;
    int r = cudago_take_lent(p, o, stream, &d, &e, &c);
    if (r <= 0) return r;
    TensorObject *t = cudago_tensor_alloc(d.ndim);
    if (!t) return cudago_cell_let_go(c), -1;
    cudago_tensor_adopt(t, c, &d, &e);
    t->origin = ORIGIN_TABLE;
    *made = (PyObject *)t;
    return 1;
}

/* JAX's arrays never change, but its capsules are of the kind that cannot say so. */
int cudago_never_changes(PyObject *o) {
    PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__module__");
    const char *name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) : NULL;
    int r = name && (!strcmp(name, "jaxlib") || !strncmp(name, "jaxlib.", 7));
    Py_XDECREF(module);
    PyErr_Clear();
    return r;
}

static QUIET cudago_cell *taken(const TensorObject *t) { return t->theirs ? t->theirs : t->cell; }

/* t, just imported from o and seen by nobody else, with what its memory is in. */
static PyObject *with_storage(PyObject *t, const cudago_producer *p, PyObject *o) {
    if (!t || !cudago_storage_keep(taken((TensorObject *)t), p, o)) return t;
    Py_DECREF(t);
    return NULL;
}

static PyObject *import(PyObject *o, const cudago_producer *p, intptr_t stream, PyObject *copy) {
    if (PyCapsule_CheckExact(o)) return import_capsule(o, p->peer);
    DLManagedTensorVersioned *m = NULL;
    if (copy == Py_True || !p->api) {
        /* Only __dlpack__ copies. */
    } else if (p->lasts) {
        PyObject *t = NULL;
        if (import_lent(o, p, stream, &t)) return t;
    } else if (through_table(p->api, o, stream, &m)) {
        return NULL;
    }
    if (m) {
        PyObject *t = cudago_tensor_import(m, p->peer);
        if (!t) cudago_dl_delete(m);
        return with_storage(t, p, o);
    }
    PyObject *capsule = ask(o, stream, copy);
    PyObject *t = capsule ? import_capsule(capsule, p->peer) : NULL;
    cudago_drop_capsule(capsule);
    if (t && ((TensorObject *)t)->origin == ORIGIN_LEGACY && cudago_never_changes(o)) ((TensorObject *)t)->flags |= TENSOR_READONLY;
    return with_storage(t, p, o);
}

static PyObject *import_object(PyObject *o, intptr_t stream, PyObject *copy) {
    cudago_producer p = {.peer = NULL};
    if (PyCapsule_CheckExact(o)) p.peer = cudago_peer_named(NULL); /* it does not say whose it is */
    else if (cudago_refuse_masked(o, "obj")) return NULL;
    else p = cudago_producer_of(Py_TYPE(o));
    PyObject *t = import(o, &p, stream, copy);
    if (cudago_tracing && t) cudago_trace_import(t, p.peer);
    return t;
}

/* On the device that was asked for: a copy, if it is not there. */
static PyObject *placed(PyObject *tensor, PyObject *device, PyObject *copy) {
    PyObject *face = tensor ? PyImport_ImportModule("cudago._tensor.dlpack") : NULL;
    PyObject *r = face ? PyObject_CallMethod(face, "_placed", "OOO", tensor, device, copy) : NULL;
    Py_XDECREF(face);
    Py_XDECREF(tensor);
    return r;
}

/* --- from_dlpack(obj, *, stream=None, device=None, copy=None) ---------------------------------------------------------------------------- */

static int read_stream(PyObject *o, intptr_t *stream, int32_t *device, cudago_stream **held) {
    *stream = 1;
    *device = CUDAGO_ANYWHERE;
    if (o == Py_None) return 0;
    if (PyLong_Check(o)) {
        *stream = (intptr_t)PyLong_AsLongLong(o);
        if (*stream == -1 && PyErr_Occurred()) return -1;
        if (*stream >= -1 && *stream != 0) return 0;
        return PyErr_SetString(PyExc_ValueError, "stream must be a Stream, -1, 1, 2 or a handle"), -1;
    }
    PyObject *keep = NULL;
    StreamObject *wrapper = cudago_stream_arg(o, &keep);
    cudago_stream *s = wrapper ? cudago_stream_now(wrapper) : NULL;
    if (s) {
        cudago_stream_retain(*held = s); /* the producer's code runs and may close the stream */
        cudago_stream_expose(s);
        *stream = s->h ? (intptr_t)s->h : 1;
        *device = s->device;
    }
    Py_XDECREF(keep);
    return s ? 0 : -1;
}

/* What is imported may be memory of ours, and have uses of ours, which its producer does not know: they too come before what the
 * consumer's stream is given. Of a tensor of ours nobody else need know. */
static PyObject *ordered(PyObject *tensor, int32_t device, intptr_t stream) {
    DLTensor d;
    cudago_cell *cell = tensor ? cudago_tensor_hold((TensorObject *)tensor, &d) : NULL;
    int r = cell ? cudago_cell_order(cell, device, stream) : -1;
    if (cell) cudago_cell_let_go(cell);
    if (!r) return tensor;
    Py_XDECREF(tensor);
    return NULL;
}

PyObject *cudago_from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    (void)module;
    CUDAGO_ENTER(NULL);
    static cudago_keyword known[] = {{"stream", NULL}, {"copy", NULL}, {"device", NULL}, {"obj", NULL}};
    static cudago_names seen[CUDAGO_CALLERS];
    PyObject *stream = Py_None, *copy = Py_None, *device = Py_None, *obj = NULL, **slots[] = {&stream, &copy, &device, &obj};
    intptr_t number;
    int32_t at;
    PyObject *unknown = cudago_read_names(seen, known, 4, names, args + n, slots);
    Py_ssize_t given = n + (obj != NULL);
    if (n) obj = args[0];
    if (given != 1)
        return PyErr_Format(PyExc_TypeError, "from_dlpack(obj, *, stream=None, device=None, copy=None) takes one object, got %zd", given), NULL;
    if (unknown) return PyErr_Format(PyExc_TypeError, "from_dlpack() got an unexpected argument %R", unknown), NULL;
    if (copy != Py_None && !PyBool_Check(copy))
        return PyErr_Format(PyExc_TypeError, "copy must be True, False or None, got %R", copy), NULL;
    cudago_stream *held = NULL;
    if (read_stream(stream, &number, &at, &held)) return NULL;
    TensorObject *t = (TensorObject *)obj;
    PyObject *first = device != Py_None && copy == Py_True ? Py_None : copy; /* copied once, to where it is to be */
    PyObject *r = !cudago_is_tensor(obj) ? import_object(obj, number, first)
                  : first == Py_True     ? cudago_tensor_copy(t, 0)
                                         : cudago_tensor_derive(t, t->ptr, t->dtype, t->ndim, t->shape, t->strides);
    int is_ordered = number == -1 || first == Py_True || (stream == Py_None && cudago_is_tensor(obj));
    if (r && !is_ordered) r = ordered(r, at, number);
    if (device != Py_None) r = placed(r, device, copy);
    if (held) cudago_stream_release(held);
    return r;
}

/* --- kernel arguments -------------------------------------------------------------------------------------------------------- */

/* *theirs, just taken from o, with what its memory is in. */
static int kept(const cudago_producer *p, PyObject *o, cudago_cell **theirs) {
    if (!*theirs) return -1;
    if (!cudago_storage_keep(*theirs, p, o)) return 0;
    cudago_cell_let_go(*theirs);
    *theirs = NULL;
    return -1;
}

static int take_argument(PyObject *o, const cudago_producer *p, DLTensor *out, cudago_cell **theirs, cudago_extent *e) {
    DLManagedTensorVersioned *m = NULL;
    if (p->lasts) {
        int lent = cudago_take_lent(p, o, -1, out, e, theirs);
        if (lent) return lent > 0 ? 0 : -1;
    } else if (p->api && through_table(p->api, o, -1, &m)) {
        return -1;
    }
    if (!m) {
        PyObject *capsule = ask(o, 1, Py_None);
        if (capsule) *theirs = cudago_capsule_take(capsule, out, e, p->peer);
        cudago_drop_capsule(capsule);
        return kept(p, o, theirs);
    }
    cudago_cell *c = check_versioned(m, e) ? NULL : cudago_foreign_new();
    if (!c) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        cudago_dl_delete(m);
        return -1;
    }
    cudago_foreign_take(c, m, e, &p->peer->ways[CUDAGO_WAY_TABLE]);
    *out = m->dl_tensor;
    *theirs = c;
    return kept(p, o, theirs);
}

/* A producer that is asked through __dlpack__ is told the legacy default stream, and cudago_foreign_stream names the
 * same one: so the producer's pending work comes before whoever waits for that stream. */
int cudago_foreign_argument(PyObject *o, DLTensor *out, cudago_cell **theirs, cudago_cell **own, uint64_t *ptr) {
    cudago_producer p = cudago_producer_of(Py_TYPE(o));
    cudago_extent e = {0};
    cudago_lines place;
    *theirs = *own = NULL;
    place.n = 0;
    if (cudago_tracing) cudago_lines_find(&place); /* now: nothing may run once PyTorch has lent its tensor */
    if (take_argument(o, &p, out, theirs, &e)) return -1;
    *own = own_memory(out, &e, ptr);
    if (cudago_tracing) cudago_trace_cell(*theirs, out, p.peer, *own ? (*own)->ordinal : (*theirs)->ordinal, &place);
    return 0;
}

int cudago_lent_storage(PyObject *o, PyObject **storage) {
    cudago_producer p = cudago_producer_of(Py_TYPE(o));
    return cudago_storage_take(&p, o, storage);
}

int cudago_lent_argument(PyObject *o, DLTensor *out, cudago_cell **own, uint64_t *ptr) {
    cudago_producer p = cudago_producer_of(Py_TYPE(o));
    cudago_extent e = {0};
    if (cudago_tracing) return 0; /* it is noted where it was made */
    if (!p.lasts || p.api->dltensor_from_py_object_no_sync(o, out)) return PyErr_Clear(), 0;
    if (cudago_tensor_check(out, 0, &e) || !e.compact || out->dtype.code == kDLComplex || cudago_may_be_negated(out, &e)) return 0;
    *own = own_memory(out, &e, ptr);
    p.peer->ways[CUDAGO_WAY_TABLE].taken++;
    p.peer->ways[CUDAGO_WAY_TABLE].released++;
    return 1;
}

int cudago_foreign_stream(PyObject *o, DLDevice device, intptr_t *stream) {
    const DLPackExchangeAPI *api = cudago_producer_of(Py_TYPE(o)).api;
    void *theirs = NULL;
    *stream = 1;
    if (!api || device.device_type == kDLCPU) return 0;
    if (api->current_work_stream(device.device_type, device.device_id, &theirs)) return -1;
    if (theirs) *stream = (intptr_t)theirs;
    return 0;
}
