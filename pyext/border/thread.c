/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Threads, by the kernel's numbers: Python's are given to later threads at once. */

QUIET int32_t cudago_thread(void) { return (int32_t)syscall(SYS_gettid); }

QUIET int cudago_thread_is_over(int32_t thread) { return syscall(SYS_tgkill, getpid(), thread, 0) && errno == ESRCH; }
