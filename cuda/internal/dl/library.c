// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // dladdr

#include "library.h"

#include <dlfcn.h>
#include <stdio.h>

void *cudago_dl_open(const char *name, char *why, int size)
{
	void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	if (library == NULL) {
		const char *text = dlerror();
		snprintf(why, (size_t)size, "%s", text != NULL ? text : "no reason given");
	}
	return library;
}

uintptr_t cudago_dl_symbol(void *library, const char *symbol)
{
	return (uintptr_t)dlsym(library, symbol);
}

const char *cudago_dl_file(uintptr_t address)
{
	Dl_info info;
	return dladdr((void *)address, &info) != 0 ? info.dli_fname : NULL;
}
