// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// PyTorch's part of an exchange in a C loop: what every library pays that goes
// through DLPack's C exchange table. Structs and functions: dlpack.h, version
// 1.3. Each loop needs the GIL and returns the nanoseconds that `calls` calls
// took, or -1 if one failed.

#define _GNU_SOURCE // clock_gettime under -std=c99

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
	void *data;
	int32_t device_type, device_id, ndim;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides;
	uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensorVersioned {
	uint32_t major, minor;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensorVersioned *self);
	uint64_t flags;
	DLTensor dl_tensor;
	int64_t arrays[2]; // ours: its shape and strides
} DLManagedTensorVersioned;

typedef struct {
	uint32_t major, minor;
	void *prev_api;
	void *managed_tensor_allocator;
	void *managed_tensor_from_py_object_no_sync;
	int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned *tensor, void **out);
	int (*dltensor_from_py_object_no_sync)(void *object, DLTensor *out);
	int (*current_work_stream)(int32_t device_type, int32_t device_id, void **out);
} DLPackExchangeAPI;

typedef int CUresult;

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Its description, and its storage, which has the memory.
int64_t import_tensor(const DLPackExchangeAPI *table, void *(*storage)(void *, void *), void (*release)(void *),
	int64_t calls, void *object)
{
	int64_t start = now();
	for (int64_t i = 0; i < calls; i++) {
		DLTensor t;
		void *memory = storage(object, NULL);
		if (memory == NULL || table->dltensor_from_py_object_no_sync(object, &t) != 0)
			return -1;
		release(memory);
	}
	return now() - start;
}

typedef struct {
	CUresult (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, void *, void **, void **);
	CUresult (*cuEventRecord)(void *, void *);
	CUresult (*cuStreamWaitEvent)(void *, void *, unsigned);
	void *kernel;
	unsigned block;
	void **params, *event, *stream;
} Launch;

// In the stream that PyTorch works in, or in another one behind it.
static CUresult launch(const Launch *l, void *theirs, int behind)
{
	CUresult r = 0;
	if (behind && (r = l->cuEventRecord(l->event, theirs)) == 0)
		r = l->cuStreamWaitEvent(l->stream, l->event, 0);
	return r != 0 ? r : l->cuLaunchKernel(l->kernel, 1, 1, 1, l->block, 1, 1, 0, behind ? l->stream : theirs, l->params, NULL);
}

// Launches of a kernel whose first argument is the tensor.
int64_t launch_with_tensor(const DLPackExchangeAPI *table, void *(*storage)(void *, void *), void (*release)(void *),
	int64_t calls, void *object, const Launch *l, int behind)
{
	int64_t start = now();
	for (int64_t i = 0; i < calls; i++) {
		DLTensor t;
		void *theirs, *memory = storage(object, NULL);
		if (memory == NULL || table->dltensor_from_py_object_no_sync(object, &t) != 0 ||
			table->current_work_stream(t.device_type, t.device_id, &theirs) != 0)
			return -1;
		*(void **)l->params[0] = t.data;
		if (launch(l, theirs, behind) != 0)
			return -1;
		release(memory);
	}
	return now() - start;
}

static void drop(DLManagedTensorVersioned *m)
{
	free(m);
}

int64_t export_tensor(const DLPackExchangeAPI *table, void (*release)(void *), int64_t calls, void *data, int32_t device_type)
{
	int64_t start = now();
	for (int64_t i = 0; i < calls; i++) {
		void *made = NULL;
		DLManagedTensorVersioned *m = malloc(sizeof *m);
		if (m == NULL)
			return -1;
		*m = (DLManagedTensorVersioned){.major = 1, .minor = 3, .deleter = drop, .arrays = {8, 1}};
		m->dl_tensor = (DLTensor){.data = data, .device_type = device_type, .ndim = 1, .code = 2, .bits = 32, .lanes = 1};
		m->dl_tensor.shape = m->arrays;
		m->dl_tensor.strides = m->arrays + 1;
		if (table->managed_tensor_to_py_object_no_sync(m, &made) != 0)
			return -1;
		release(made);
	}
	return now() - start;
}
