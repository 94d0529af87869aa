// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#ifndef CUDAGO_NVIDIA_LIBRARY_H
#define CUDAGO_NVIDIA_LIBRARY_H

#include <stdint.h>

// cudago_open_library opens the library called name. On failure it returns
// NULL and writes the loader's text to why. Both in one call, as the text
// belongs to the thread and Go may change threads between two.
void *cudago_open_library(const char *name, char *why, int size);

// cudago_find_symbol returns the address of an exported symbol, or 0.
uintptr_t cudago_find_symbol(void *library, const char *symbol);

// cudago_get_proc_address calls cuGetProcAddress_v2 (cuda.h, CUDA 12.0) at
// address get. found is 0 unless the driver has symbol in that version.
int32_t cudago_get_proc_address(uintptr_t get, const char *symbol, int version, uintptr_t *found);

#endif
