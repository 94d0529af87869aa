// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#ifndef CUDAGO_DL_LIBRARY_H
#define CUDAGO_DL_LIBRARY_H

#include <stdint.h>

// cudago_dl_open opens the library called name. On failure it returns NULL and
// writes the loader's text to why. Both in one call, as the text belongs to the
// thread and Go may change threads between two.
void *cudago_dl_open(const char *name, char *why, int size);

// cudago_dl_symbol returns the address of an exported symbol, or 0.
uintptr_t cudago_dl_symbol(void *library, const char *symbol);

// cudago_dl_file returns the file that address was loaded from, or NULL. The
// text belongs to the loader.
const char *cudago_dl_file(uintptr_t address);

#endif
