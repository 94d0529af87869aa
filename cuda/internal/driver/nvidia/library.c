// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#include "library.h"

#include <stddef.h>

int32_t cudago_get_proc_address(uintptr_t get, const char *symbol, int version, uintptr_t *found)
{
	typedef int32_t (*get_proc_address)(const char *, void **, int, uint64_t, int *);
	void *address = NULL;
	int status = 0;
	int32_t result = ((get_proc_address)get)(symbol, &address, version, 0, &status);
	*found = result == 0 && status == 0 ? (uintptr_t)address : 0;
	return result;
}
