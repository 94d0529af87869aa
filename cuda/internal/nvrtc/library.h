// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#ifndef CUDAGO_NVRTC_LIBRARY_H
#define CUDAGO_NVRTC_LIBRARY_H

#include <stdint.h>

// cudago_nvrtc_open opens the library called name, or returns NULL and writes
// the loader's text to why: in one call, as the text belongs to the thread.
void *cudago_nvrtc_open(const char *name, char *why, int size);

// cudago_nvrtc_symbol returns the address of an exported symbol, or 0.
uintptr_t cudago_nvrtc_symbol(void *library, const char *symbol);

// cudago_symbol_file returns the file that address was loaded from, or NULL.
// The text belongs to the loader.
const char *cudago_symbol_file(uintptr_t address);

#endif
