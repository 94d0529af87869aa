/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

/* The generation of a device, which every object made on it remembers. reset.c begins the next one. */

uint32_t cudago_generation[CUDAGO_MAX_DEVICES];
uint64_t cudago_resets;

QUIET void cudago_generation_move(int32_t device, int by) {
    cudago_generation[device] += (uint32_t)by;
    cudago_resets++;
}

int cudago_raise_lost(const char *what, int32_t device) {
    return cudago_raise_closed_as("%s is closed: device %d %s reset", what, device, cudago_resetting(device) ? "is being" : "was");
}

int cudago_making(int32_t device, uint32_t *generation) {
    if (device < 0 || device >= CUDAGO_MAX_DEVICES) return PyErr_SetString(PyExc_ValueError, "no such device"), -1;
    if (cudago_resetting(device)) return cudago_raise_lost("device", device);
    *generation = cudago_generation[device];
    return 0;
}

QUIET int cudago_made(const char *what, int32_t device, uint32_t generation) {
    return cudago_lost(device, generation) ? cudago_raise_lost(what, device) : 0;
}
