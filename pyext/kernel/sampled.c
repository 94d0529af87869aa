/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* Textures and surfaces of arrays. One holds a count of the array's cell, so that the array need not stay open. */

static QUIET int hold(DescriptorObject *d, PyObject *array) {
    const ArrayObject *a = (ArrayObject *)array;
    if (cudago_cell_now(a->cell, "array")) return -1;
    cudago_cell_retain(a->cell);
    d->cell = a->cell;
    d->address = a->handle;
    d->nbytes = a->nbytes;
    d->device = d->home = a->device;
    return 0;
}

/* One over an open array. */
static DescriptorObject *over(PyObject *cls, PyObject *array, enum cudago_class k, PyObject *facts) {
    if (cudago_expect(array, k, "array")) return NULL;
    DescriptorObject *d = cudago_descriptor_alloc(cls, array, facts);
    if (d && !hold(d, array)) return d;
    Py_XDECREF(d);
    return NULL;
}

/* The GIL was released: is the array still there? A reset may have destroyed it. */
static PyObject *made(DescriptorObject *d, int failed) {
    if (!failed && !cudago_cell_now(d->cell, "array")) return (PyObject *)d;
    Py_DECREF(d);
    return NULL;
}

/* _array_texture_new(cls, array, (x, y, z, linear, normalized, integer, srgb, seamless), border, facts[, (linear, bias, least, greatest)]):
 * with the last if the array has levels. */
PyObject *cudago_array_texture_new(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *cls, *array, *facts;
    PyObject *levels = NULL;
    cudago_texels t = {.array = 1};
    if (!PyArg_ParseTuple(args, "OO(iiiiiiii)(ffff)O!|O!", &cls, &array, &t.address[0], &t.address[1], &t.address[2], &t.linear, &t.normalized,
                          &t.integer, &t.srgb, &t.seamless, &t.border[0], &t.border[1], &t.border[2], &t.border[3], &PyTuple_Type, &facts, &PyTuple_Type,
                          &levels)) return NULL;
    t.mipmapped = levels != NULL;
    if (levels && !PyArg_ParseTuple(levels, "ifff", &t.between, &t.bias, &t.least, &t.greatest)) return NULL;
    DescriptorObject *d = over(cls, array, levels ? CLS_MIPMAPPED : CLS_ARRAY, facts);
    return d ? made(d, cudago_make_texture(d, &t)) : NULL;
}

static int make_surface(DescriptorObject *d) {
    cudago_status st = {0};
    uint64_t handle = 0;
    d->size = sizeof handle;
    d->is_surface = 1;
    if (cudago_making(d->home, &d->generation)) return -1;
    Py_BEGIN_ALLOW_THREADS
    d->texture = cudagoSurface(d->home, d->address, &handle, &st);
    Py_END_ALLOW_THREADS
    memcpy(d->bytes, &handle, sizeof handle);
    return st.kind ? cudago_raise(&st) : cudago_made("surface", d->home, d->generation);
}

/* _surface_new(cls, array, facts) */
PyObject *cudago_surface_new(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *cls, *array, *facts;
    if (!PyArg_ParseTuple(args, "OOO!", &cls, &array, &PyTuple_Type, &facts)) return NULL;
    DescriptorObject *d = over(cls, array, CLS_ARRAY, facts);
    return d ? made(d, make_surface(d)) : NULL;
}
