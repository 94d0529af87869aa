// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#ifndef CUDAGO_NVIDIA_LIBRARY_H
#define CUDAGO_NVIDIA_LIBRARY_H

#include <stdint.h>

// cudago_get_proc_address calls cuGetProcAddress_v2 (cuda.h, CUDA 12.0) at
// address get. found is 0 unless the driver has symbol in that version.
int32_t cudago_get_proc_address(uintptr_t get, const char *symbol, int version, uintptr_t *found);

#endif
