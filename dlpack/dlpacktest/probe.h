// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

/* probe.h: producers and consumers of the exchange core with every step in a test's hands. */
#pragma once
#include "../exported.h"

cudago_cell *probe_cell(uint64_t size);
cudago_cell *probe_noted(uint64_t ptr, uint64_t host, uint64_t size); /* pinned; other memory than its own */
int64_t probe_cells_released(void);

/* Gives n counts back, each on a thread of its own. */
int probe_release_on_threads(cudago_cell *c, int n);

/* Counts pokes until it is turned off. */
void probe_poke(int on);
int64_t probe_pokes(void);

/* Runs an export's deleter on a new thread. */
int probe_delete_on_thread(DLManagedTensorVersioned *m);

/* A managed tensor of somebody else's, whose deleter counts; without_deleter: it has none. */
DLManagedTensorVersioned *probe_foreign(int without_deleter);
DLManagedTensor *probe_foreign_legacy(int without_deleter);
int64_t probe_deleted(void);
