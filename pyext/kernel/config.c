/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* LaunchConfig: the shape of a launch, checked by itself when it is made and against the device's limits at the
 * launch. */

static int read_dims(PyObject *o, uint32_t *out, const char *name) {
    out[0] = out[1] = out[2] = 1;
    PyObject *items = PyTuple_Check(o) || PyList_Check(o) ? PySequence_Tuple(o) : PyTuple_Pack(1, o);
    if (!items) return -1;
    Py_ssize_t n = PyTuple_Size(items);
    if (n < 1 || n > 3) {
        PyErr_Format(PyExc_ValueError, "%s must be an int or 1 to 3 ints, got %zd", name, n);
        Py_DECREF(items);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(items, i), *index = PyBool_Check(item) ? NULL : PyNumber_Index(item);
        if (!index) { /* another exception that __index__ raised passes through */
            if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
                PyErr_Format(PyExc_TypeError, "%s must be an int or a tuple of ints, got %R", name, o);
            Py_DECREF(items);
            return -1;
        }
        int overflow;
        long long v = PyLong_AsLongLongAndOverflow(index, &overflow);
        Py_DECREF(index);
        if (overflow || v < 1 || v > UINT32_MAX) {
            cudago_raise_number(PyExc_ValueError, o, "%s must be at least 1 in every dimension and fit 32 bits", name);
            Py_DECREF(items);
            return -1;
        }
        out[i] = (uint32_t)v;
    }
    Py_DECREF(items);
    return 0;
}

/* What the driver refuses, without a word about why. */
static int read_event(PyObject *o, EventObject **event, const char *name) {
    if (o == Py_None) return 0;
    if (cudago_expect(o, CLS_EVENT, name)) return -1;
    EventObject *e = (EventObject *)o;
    if (e->timing) return PyErr_Format(PyExc_ValueError, "%s must be an event without timing_enabled", name), -1;
    if (e->shared) return PyErr_Format(PyExc_ValueError, "%s must not be an event that processes share", name), -1;
    *event = (EventObject *)NEW_REF(o);
    return 0;
}
static int read_events(ConfigObject *self, PyObject *programmatic, PyObject *completion) {
    if (read_event(programmatic, &self->programmatic_event, "programmatic_event") ||
        read_event(completion, &self->launch_completion_event, "launch_completion_event"))
        return -1;
    if (programmatic != Py_None && programmatic == completion)
        return PyErr_SetString(PyExc_ValueError, "programmatic_event and launch_completion_event must be two events"), -1;
    if (self->trigger_at_block_start && !self->programmatic_event)
        return PyErr_SetString(PyExc_ValueError, "trigger_at_block_start needs a programmatic_event, which it triggers"), -1;
    return 0;
}

int cudago_refuse_events(const ConfigObject *c, const char *what) {
    if (!cudago_records_events(c)) return 0;
    return PyErr_Format(PyExc_ValueError,
                        "config must not have a %s: %s records none, only a launch into a stream does; edges of graphs say the same, "
                        "see Graph.add_edge",
                        c->programmatic_event ? "programmatic_event" : "launch_completion_event", what),
           -1;
}

PyObject *cudago_config_without_events(ConfigObject *c) {
    if (!cudago_records_events(c)) return NEW_REF(c);
    ConfigObject *plain = cudago_alloc(CLS_CONFIG);
    if (!plain) return NULL;
    cudago_shape shape = cudago_shape_of(c);
    memcpy(plain->grid, &shape, sizeof shape);
    return (PyObject *)plain;
}

/* 1 and 0 are flags too, as elsewhere in Python; text is none. */
static int read_flag(PyObject *o, int32_t *flag, const char *name) {
    *flag = PyLong_Check(o) ? PyObject_IsTrue(o) : cudago_flag(o, name);
    return *flag < 0 ? -1 : 0;
}

/* _config_new(cls, grid, block, cluster, shared_memory, cooperative, priority, programmatic, programmatic_event,
 * trigger_at_block_start, launch_completion_event) */
PyObject *cudago_config_new(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *cls, *grid, *block, *cluster, *shared, *cooperative, *priority, *programmatic, *programmatic_event, *trigger, *completion_event;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOO", &cls, &grid, &block, &cluster, &shared, &cooperative, &priority, &programmatic,
                          &programmatic_event, &trigger, &completion_event))
        return NULL;
    if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, cudago_base[CLS_CONFIG]))
        return PyErr_SetString(PyExc_TypeError, "not a LaunchConfig class"), NULL;
    PyTypeObject *type = (PyTypeObject *)cls;
    ConfigObject *self = (ConfigObject *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) return NULL;
    int32_t bytes = 0;
    int bad = read_flag(cooperative, &self->cooperative, "cooperative") || read_flag(programmatic, &self->programmatic, "programmatic") ||
              read_flag(trigger, &self->trigger_at_block_start, "trigger_at_block_start") || cudago_int32(shared, "shared_memory", 0, &bytes) || read_dims(grid, self->grid, "grid") || read_dims(block, self->block, "block");
    self->shared_memory = (uint32_t)bytes;
    if (!bad && cluster != Py_None) bad = read_dims(cluster, self->cluster, "cluster");
    if (!bad && priority != Py_None) {
        self->has_priority = 1;
        bad = cudago_int32(priority, "priority", INT32_MIN, &self->priority);
    }
    if (bad || read_events(self, programmatic_event, completion_event)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int check_shared(const ConfigObject *c, cudago_kernel *k) {
    uint32_t most = k->max_shared;
    if (c->shared_memory <= most) return 0;
    if (cudago_opt_in(k, c->shared_memory, &most)) return -1;
    if (c->shared_memory <= k->max_shared) return 0;
    PyErr_Format(PyExc_ValueError, "shared_memory must be at most %u bytes for this kernel%s, got %u", most,
                 k->shared_set ? ", whose max_dynamic_shared_size was set" : "", c->shared_memory);
    return -1;
}

#define MAX_LOCAL_SIZE (512u << 10) /* cuda.MaxLocalSize */

/* Raises an error that says which limit is exceeded; 0 if none is. */
static int wrong_config(const ConfigObject *c, cudago_kernel *k) {
    static const char *const axis[] = {"x", "y", "z"};
    for (int i = 0; i < 3; i++) {
        if (c->grid[i] > k->limits[i]) {
            PyErr_Format(PyExc_ValueError, "grid must be at most %u blocks in %s, got %u", k->limits[i], axis[i], c->grid[i]);
            return -1;
        }
        if (c->block[i] > k->limits[3 + i]) {
            PyErr_Format(PyExc_ValueError, "block must be at most %u threads in %s, got %u", k->limits[3 + i], axis[i],
                         c->block[i]);
            return -1;
        }
    }
    uint64_t threads = (uint64_t)c->block[0] * c->block[1] * c->block[2];
    if (threads > k->max_threads) {
        PyErr_Format(PyExc_ValueError, "block must be 1 to %u threads for this kernel, got %llu", k->max_threads,
                     (unsigned long long)threads);
        return -1;
    }
    if (k->local_size > MAX_LOCAL_SIZE) {
        PyErr_Format(PyExc_ValueError, "the kernel has %u bytes of local memory for each thread, and a thread can have at most %u",
                     k->local_size, MAX_LOCAL_SIZE);
        return -1;
    }
    return check_shared(c, k);
}

static QUIET int needs_programmatic(const ConfigObject *c) { return c->programmatic || c->programmatic_event; }

/* The rest is rare enough for a call into Go: a cluster has to divide the grid, on a device that has clusters. And a
 * programmatic launch needs a device that has those. */
static int check_rest(ConfigObject *c, cudago_kernel *k) {
    cudago_status st = {0};
    cudagoCheckConfig(k, c->grid, c->block, c->cluster, needs_programmatic(c), &st);
    return st.kind ? cudago_raise(&st) : 0;
}

/* Checks against the limits of the device and the kernel, before anything is launched. */
int cudago_check_config(ConfigObject *c, cudago_kernel *k) {
    const uint32_t *g = c->grid, *b = c->block, *max = k->limits;
    int fits = g[0] <= max[0] && g[1] <= max[1] && g[2] <= max[2] && b[0] <= max[3] && b[1] <= max[4] && b[2] <= max[5] &&
               (uint64_t)b[0] * b[1] * b[2] <= k->max_threads && c->shared_memory <= k->max_shared &&
               k->local_size <= MAX_LOCAL_SIZE;
    if (!fits && wrong_config(c, k)) return -1;
    return c->cluster[0] || needs_programmatic(c) > k->programmatic ? check_rest(c, k) : 0;
}

static PyObject *dims(const uint32_t *d) { return Py_BuildValue("(III)", d[0], d[1], d[2]); }
static PyObject *config_grid(ConfigObject *self, void *unused) {
    (void)unused;
    return dims(self->grid);
}
static PyObject *config_block(ConfigObject *self, void *unused) {
    (void)unused;
    return dims(self->block);
}
static PyObject *config_cluster(ConfigObject *self, void *unused) {
    (void)unused;
    if (!self->cluster[0]) Py_RETURN_NONE;
    return dims(self->cluster);
}
static PyObject *config_shared(ConfigObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(self->shared_memory);
}
static PyObject *config_cooperative(ConfigObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->cooperative);
}
static PyObject *config_priority(ConfigObject *self, void *unused) {
    (void)unused;
    if (!self->has_priority) Py_RETURN_NONE;
    return PyLong_FromLong(self->priority);
}

static PyObject *config_programmatic(ConfigObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->programmatic);
}

static PyObject *config_trigger(ConfigObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->trigger_at_block_start);
}
static PyObject *config_programmatic_event(ConfigObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->programmatic_event ? (PyObject *)self->programmatic_event : Py_None);
}
static PyObject *config_completion_event(ConfigObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->launch_completion_event ? (PyObject *)self->launch_completion_event : Py_None);
}

static void config_dealloc(ConfigObject *self) {
    Py_XDECREF(self->programmatic_event);
    Py_XDECREF(self->launch_completion_event);
    cudago_free((PyObject *)self);
}

static PyGetSetDef getset[] = {
    {"grid", (getter)config_grid, NULL, DOC_LAUNCHCONFIG_GRID, NULL},
    {"block", (getter)config_block, NULL, DOC_LAUNCHCONFIG_BLOCK, NULL},
    {"cluster", (getter)config_cluster, NULL, DOC_LAUNCHCONFIG_CLUSTER, NULL},
    {"shared_memory", (getter)config_shared, NULL, DOC_LAUNCHCONFIG_SHARED_MEMORY, NULL},
    {"cooperative", (getter)config_cooperative, NULL, DOC_LAUNCHCONFIG_COOPERATIVE, NULL},
    {"priority", (getter)config_priority, NULL, DOC_LAUNCHCONFIG_PRIORITY, NULL},
    {"programmatic", (getter)config_programmatic, NULL, DOC_LAUNCHCONFIG_PROGRAMMATIC, NULL},
    {"programmatic_event", (getter)config_programmatic_event, NULL, DOC_LAUNCHCONFIG_PROGRAMMATIC_EVENT, NULL},
    {"trigger_at_block_start", (getter)config_trigger, NULL, DOC_LAUNCHCONFIG_TRIGGER_AT_BLOCK_START, NULL},
    {"launch_completion_event", (getter)config_completion_event, NULL, DOC_LAUNCHCONFIG_LAUNCH_COMPLETION_EVENT, NULL},
    {0},
};
static PyType_Slot slots[] = {{Py_tp_dealloc, config_dealloc}, {Py_tp_getset, getset}, {0, NULL}};
PyType_Spec cudago_config_spec = {
    "cudago._core.LaunchConfig",
    sizeof(ConfigObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};
