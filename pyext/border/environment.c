/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include <string.h>
#include <unistd.h>

/* Go's runtime reads variables of the environment when it starts, and some values end the process or slow it down:
 * GOMEMLIMIT=2GB, GODEBUG=cgocheck=2, GOMEMLIMIT=1MiB. They were set for another program in Go, the user's. So they are out of
 * its sight until it has started. Go reads the block that the process began with, not `environ`. */

static const char *const names[] = {"GODEBUG=", "GOMEMLIMIT=", "GOGC=", "GOMAXPROCS="};
#define NAMES (sizeof names / sizeof *names)

/* Stands where a variable stood: which, and so where to put it back if others move entries meanwhile. */
static char hidden[NAMES][16] = {"CUDAGO_HIDES=0", "CUDAGO_HIDES=1", "CUDAGO_HIDES=2", "CUDAGO_HIDES=3"};
static char *values[NAMES];
static char **block;

/* Before the constructor that starts Go's runtime, which has no priority. */
__attribute__((constructor(101))) static void hide(int argc, char **argv, char **unused) {
    (void)unused;
    block = argv + argc + 1;
    for (char **entry = block; *entry; entry++)
        for (size_t i = 0; i < NAMES; i++)
            if (!values[i] && !strncmp(*entry, names[i], strlen(names[i]))) {
                values[i] = *entry;
                *entry = hidden[i];
            }
}

static void show_in(char **entries) {
    for (char **entry = entries; entry && *entry; entry++)
        for (size_t i = 0; i < NAMES; i++)
            if (*entry == hidden[i]) *entry = values[i];
}

/* Go has started: a call into it has returned. */
void cudago_show_variables(void) {
    show_in(block);
    show_in(environ);
}
