/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include "_cgo_export.h"

cudago_calls cu;

/* Drivers without C entry points (simulated, fault, trace) are called through Go. */
void cudago_trampolines(cudago_calls *c) {
#define MEMBER(call, raw) .call = raw,
    *c = (cudago_calls){CUDAGO_CALLS(MEMBER)};
#undef MEMBER
}
