// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

/* exported.h: memory of ours that other libraries and Python's buffers were given, found again by its address. A library that hands such
 * memory back describes it as its own, and on the simulated driver as the host's. All functions need the GIL. */
#pragma once
#include "exchange.h"

/* From now on c's memory is found, until c is released. Memory without bytes, of other libraries or of no kind that has
 * an owner here is not. It may also not be found if there is no memory to note it in. */
void cudago_exported_note(cudago_cell *c);

/* The cell that t's memory lies in, with a count for the caller, and in *ptr the address of t's first element in it as
 * kernels see it; NULL if it is not ours. e is what cudago_tensor_check said of t. */
cudago_cell *cudago_exported_find(const DLTensor *t, const cudago_extent *e, uint64_t *ptr);

/* For the release of a cell that was noted. */
void cudago_exported_forget(cudago_cell *c);

/* Forgets the cells whose memory is gone before their holders: other memory may come to lie there, and is not noted where
 * another cell is. */
void cudago_exported_forget_gone(int (*is_gone)(const cudago_cell *));
