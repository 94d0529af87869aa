// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// A stand-in for libcuda, compiled by the tests. It writes a line for each
// look-up and each call to the file that STANDIN_LOG names and computes
// nothing. Calls of numbers and handles alone are generated, in zlibcuda.h; here
// is what differs. Its structs are spelled out after cuda.h, CUDA 12.4, apart
// from those of package driver, so that the two check one another.
//
// STANDIN_VERSION  what cuDriverGetVersion says (12040)
// STANDIN_MISSING  names that it does not have, separated by commas
// STANDIN_LINGER   microseconds that calls take which must exclude each other (0)
// WITHOUT_GET_PROC_ADDRESS, at compile time: exported names only

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int CUresult;
typedef uint64_t CUdeviceptr;
typedef void *handle;

#define EXPORT __attribute__((visibility("default")))
#define HANDLE(n) ((handle)(uintptr_t)(n))

static void note(const char *format, ...)
{
	FILE *f = fopen(getenv("STANDIN_LOG"), "a");
	va_list args;
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	fputc('\n', f);
	fclose(f);
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
	const char *v = getenv("STANDIN_VERSION");
	*version = v != NULL ? atoi(v) : 12040;
	return 0;
}

EXPORT CUresult cuDeviceGetName(char *name, int size, int dev)
{
	note("cuDeviceGetName %d %d", size, dev);
	snprintf(name, (size_t)size, "Stand-in %d", dev);
	return 0;
}

EXPORT CUresult cuTexObjectCreate(uint64_t *texture, const int *resource, const int *description, const int *view)
{
	note("cuTexObjectCreate %d %d view=%d", resource[0], description[0], view != NULL ? view[0] : -1);
	*texture = 0x90;
	return 0;
}

// cuda.h, CUDA 13.0.
typedef struct {
	int type;
	unsigned char padding[92];
	unsigned sms, least, multiple;
	unsigned char oversize[36];
} resource;

EXPORT CUresult cuDevSmResourceSplitByCount(resource *groups, unsigned *count, const resource *input, resource *left, unsigned flags,
	unsigned min_count)
{
	note("cuDevSmResourceSplitByCount groups=%d %u %d %u %u %u", groups != NULL, *count, input->type, input->sms, flags, min_count);
	*count = input->sms / min_count;
	for (unsigned i = 0; groups != NULL && i < *count; i++)
		groups[i] = (resource){.type = 1, .sms = min_count, .least = 2, .multiple = i};
	*left = (resource){.type = 1, .sms = input->sms % min_count};
	return 0;
}

EXPORT CUresult cuDevResourceGenerateDesc(handle *desc, resource *list, unsigned count)
{
	note("cuDevResourceGenerateDesc %u %u %u", count, list[0].sms, list[count - 1].multiple);
	*desc = HANDLE(0x70);
	return 0;
}

EXPORT CUresult cuTensorMapEncodeTiled(unsigned long long *map, int type, unsigned rank, void *tensor, const unsigned long long *dims,
	const unsigned long long *strides, const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion, int fill)
{
	note("cuTensorMapEncodeTiled aligned=%d %d %u %p %llu,%llu %llu %u,%u %u,%u %d %d %d %d", (size_t)map % 64 == 0, type, rank, tensor,
		dims[0], dims[1], strides[0], box[0], box[1], steps[0], steps[1], interleave, swizzle, promotion, fill);
	map[0] = 7;
	map[15] = 8;
	return 0;
}

EXPORT CUresult cuTensorMapEncodeIm2col(unsigned long long *map, int type, unsigned rank, void *tensor, const unsigned long long *dims,
	const unsigned long long *strides, const int *lower, const int *upper, unsigned channels, unsigned pixels, const unsigned *steps,
	int interleave, int swizzle, int promotion, int fill)
{
	note("cuTensorMapEncodeIm2col aligned=%d %d %u %p %llu,%llu,%llu %llu,%llu %d %d %u %u %u,%u,%u %d %d %d %d", (size_t)map % 64 == 0, type,
		rank, tensor, dims[0], dims[1], dims[2], strides[0], strides[1], lower[0], upper[0], channels, pixels, steps[0], steps[1], steps[2],
		interleave, swizzle, promotion, fill);
	map[0] = 9;
	return 0;
}

EXPORT CUresult cuTensorMapEncodeIm2colWide(unsigned long long *map, int type, unsigned rank, void *tensor, const unsigned long long *dims,
	const unsigned long long *strides, int lower, int upper, unsigned channels, unsigned pixels, const unsigned *steps, int interleave, int mode,
	int swizzle, int promotion, int fill)
{
	note("cuTensorMapEncodeIm2colWide aligned=%d %d %u %p %llu,%llu,%llu %llu,%llu %d %d %u %u %u,%u,%u %d %d %d %d %d", (size_t)map % 64 == 0,
		type, rank, tensor, dims[0], dims[1], dims[2], strides[0], strides[1], lower, upper, channels, pixels, steps[0], steps[1], steps[2],
		interleave, mode, swizzle, promotion, fill);
	map[0] = 10;
	return 0;
}

typedef struct { int type, id; } location;

EXPORT CUresult cuMemAdvise_v2(CUdeviceptr p, size_t size, int advice, location l)
{
	note("cuMemAdvise %#llx %zu %d %d %d", (unsigned long long)p, size, advice, l.type, l.id);
	return 0;
}

EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr p, size_t size, location l, unsigned flags, handle s)
{
	note("cuMemPrefetchAsync %#llx %zu %d %d %u %p", (unsigned long long)p, size, l.type, l.id, flags, s);
	return 0;
}

EXPORT CUresult cuMemRangeGetAttribute(void *data, size_t size, int attribute, CUdeviceptr p, size_t range)
{
	note("cuMemRangeGetAttribute %zu %d %#llx %zu", size, attribute, (unsigned long long)p, range);
	for (size_t i = 0; i < size / sizeof(int); i++)
		((int *)data)[i] = -1 - (int)i;
	return 0;
}

typedef struct { struct { int type, id; } location; int flags; } access_desc;

EXPORT CUresult cuMemPoolSetAccess(handle pool, const access_desc *a, size_t n)
{
	note("cuMemPoolSetAccess %p %zu %d %d %d", pool, n, a[n - 1].location.type, a[n - 1].location.id, a[n - 1].flags);
	return 0;
}

EXPORT CUresult cuMemPoolGetAccess(int *flags, handle pool, location *l)
{
	note("cuMemPoolGetAccess %p %d %d", pool, l->type, l->id);
	*flags = 3;
	return 0;
}

EXPORT CUresult cuLaunchHostFunc(handle s, void (*fn)(void *), void *data)
{
	note("cuLaunchHostFunc %p", s);
	fn(data);
	return 0;
}

EXPORT CUresult cuStreamGetCaptureInfo_v3(handle s, int *status, uint64_t *id, handle *graph,
	const handle **deps, const uint64_t **edges, size_t *count)
{
	static const handle nodes[] = {HANDLE(7), HANDLE(8), HANDLE(9)};
	note("cuStreamGetCaptureInfo %p deps=%d edges=%d", s, deps != NULL, edges != NULL);
	*status = 1;
	*id = 1ull << 40;
	*graph = HANDLE(6);
	if (deps)
		*deps = nodes;
	if (count)
		*count = 3;
	return 0;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
	note("cuThreadExchangeStreamCaptureMode %d", *mode);
	*mode = 2;
	return 0;
}

// Who is inside calls on one stream. Driver 580.159 dies by SIGSEGV where
// cuEventRecord meets the begin or the end of a capture of its stream.
static struct { atomic_int records, captures; } traffic[256];

#define TRAFFIC(s) (&traffic[(uintptr_t)(s) / 16 % 256])

static void meet(atomic_int *mine, atomic_int *theirs, const char *call, handle s)
{
	const char *us = getenv("STANDIN_LINGER");
	atomic_fetch_add(mine, 1);
	if (atomic_load(theirs) > 0) {
		fprintf(stderr, "stand-in: %s of stream %p met a call that it must not meet: NVIDIA's driver crashes here\n", call, s);
		abort();
	}
	if (us != NULL)
		usleep((useconds_t)atoi(us));
	atomic_fetch_sub(mine, 1);
}

EXPORT CUresult cuStreamBeginCapture_v2(handle s, int mode)
{
	meet(&TRAFFIC(s)->captures, &TRAFFIC(s)->records, "cuStreamBeginCapture", s);
	note("cuStreamBeginCapture %p %d", s, mode);
	return 0;
}

EXPORT CUresult cuStreamEndCapture(handle s, handle *graph)
{
	meet(&TRAFFIC(s)->captures, &TRAFFIC(s)->records, "cuStreamEndCapture", s);
	note("cuStreamEndCapture %p", s);
	*graph = HANDLE(6);
	return 0;
}

EXPORT CUresult cuEventRecord(handle e, handle s)
{
	meet(&TRAFFIC(s)->records, &TRAFFIC(s)->captures, "cuEventRecord", s);
	note("cuEventRecord %p %p", e, s);
	return 0;
}

typedef struct {
	int alloc_type, handle_types;
	struct { int type, id; } location;
	void *win32;
	size_t max_size;
	unsigned short usage;
	unsigned char reserved[54];
} pool_props;

EXPORT CUresult cuMemPoolCreate(handle *pool, const pool_props *p)
{
	note("cuMemPoolCreate %d %d %d %d %zu %u", p->alloc_type, p->handle_types,
		p->location.type, p->location.id, p->max_size, p->usage);
	*pool = HANDLE(11);
	return 0;
}

// Writes what the driver writes: an int for attributes 1 to 3. The neighbours
// of an int that is taken for 64 bits show in the value.
EXPORT CUresult cuMemPoolSetAttribute(handle pool, int attr, void *value)
{
	uint64_t v = attr <= 3 ? (uint64_t)*(int *)value : *(uint64_t *)value;
	note("cuMemPoolSetAttribute %p %d %llu", pool, attr, (unsigned long long)v);
	return 0;
}

EXPORT CUresult cuMemPoolGetAttribute(handle pool, int attr, void *value)
{
	note("cuMemPoolGetAttribute %p %d", pool, attr);
	if (attr <= 3)
		*(int *)value = 1;
	else
		*(uint64_t *)value = (uint64_t)3 << 32;
	return 0;
}

EXPORT CUresult cuDeviceSetGraphMemAttribute(int dev, int attr, void *value)
{
	note("cuDeviceSetGraphMemAttribute %d %d %llu", dev, attr, (unsigned long long)*(uint64_t *)value);
	return 0;
}

EXPORT CUresult cuDeviceGetGraphMemAttribute(int dev, int attr, void *value)
{
	note("cuDeviceGetGraphMemAttribute %d %d", dev, attr);
	*(uint64_t *)value = (uint64_t)3 << 32;
	return 0;
}

EXPORT CUresult cuPointerGetAttribute(void *data, int attr, CUdeviceptr p)
{
	note("cuPointerGetAttribute %d %#llx", attr, (unsigned long long)p);
	switch (attr) {
	case 2: *(unsigned *)data = 2; break;
	case 8: *(unsigned char *)data = 1; break;
	case 9: *(int *)data = -2; break;
	default: *(uint64_t *)data = p;
	}
	return 0;
}

typedef struct {
	int type, handle_types;
	struct { int type, id; } location;
	void *win32;
	unsigned char compression, rdma;
	unsigned short usage;
	unsigned char reserved[4];
} allocation_prop;

static void note_prop(const char *call, const allocation_prop *p, const char *last, unsigned long long value)
{
	note("%s %d %d %d %d %p %u %u %u %s=%llu", call, p->type, p->handle_types, p->location.type, p->location.id,
		p->win32, p->compression, p->rdma, p->usage, last, value);
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *bytes, const allocation_prop *p, int option)
{
	note_prop("cuMemGetAllocationGranularity", p, "option", (unsigned long long)option);
	*bytes = (size_t)2 << 20;
	return 0;
}

EXPORT CUresult cuMemCreate(unsigned long long *h, size_t size, const allocation_prop *p, unsigned long long flags)
{
	char call[64];
	snprintf(call, sizeof call, "cuMemCreate %zu", size);
	note_prop(call, p, "flags", flags);
	*h = 1ull << 63;
	return 0;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr p, size_t size, const access_desc *desc, size_t count)
{
	char text[256] = "";
	for (size_t i = 0, at = 0; i < count; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, " %d,%d,%d", desc[i].location.type, desc[i].location.id, desc[i].flags);
	note("cuMemSetAccess %#llx %zu%s", (unsigned long long)p, size, text);
	return 0;
}

EXPORT CUresult cuModuleLoadDataEx(handle *m, const char *image, unsigned n, int *options, void **values)
{
	note("cuModuleLoadDataEx %s %u", image, n);
	if (strcmp(image, "bad") != 0) {
		*m = HANDLE(12);
		return 0;
	}
	for (unsigned i = 0; i < n; i++)
		if (options[i] == 5)
			strcpy(values[i], "ptxas: line 1; bad\n");
	return 218;
}

EXPORT CUresult cuModuleGetFunction(handle *f, handle m, const char *name)
{
	note("cuModuleGetFunction %p %s", m, name);
	*f = HANDLE(13);
	return 0;
}

EXPORT CUresult cuModuleGetFunctionCount(unsigned *count, handle m)
{
	*count = m == HANDLE(12) ? 2 : 0;
	return 0;
}

// cuda.h, CUDA 12.4: a file descriptor goes out as an int and comes in as the pointer.
typedef struct { unsigned char reserved[64]; } opaque;

EXPORT CUresult cuMemPoolExportToShareableHandle(void *out, handle pool, int type, unsigned long long flags)
{
	note("cuMemPoolExportToShareableHandle %p %d %llu", pool, type, flags);
	*(int *)out = 17;
	return 0;
}

EXPORT CUresult cuMemPoolImportFromShareableHandle(handle *pool, void *in, int type, unsigned long long flags)
{
	note("cuMemPoolImportFromShareableHandle %d %d %llu", (int)(intptr_t)in, type, flags);
	*pool = HANDLE(12);
	return 0;
}

EXPORT CUresult cuMemExportToShareableHandle(void *out, unsigned long long h, int type, unsigned long long flags)
{
	note("cuMemExportToShareableHandle %#llx %d %llu", h, type, flags);
	*(int *)out = 19;
	return 0;
}

EXPORT CUresult cuMemImportFromShareableHandle(unsigned long long *h, void *in, int type)
{
	note("cuMemImportFromShareableHandle %d %d", (int)(intptr_t)in, type);
	*h = 1ull << 62;
	return 0;
}

EXPORT CUresult cuMemPoolExportPointer(opaque *out, CUdeviceptr p)
{
	note("cuMemPoolExportPointer %#llx", (unsigned long long)p);
	for (int i = 0; i < 64; i++)
		out->reserved[i] = (unsigned char)(i + 1);
	return 0;
}

EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *p, handle pool, opaque *in)
{
	note("cuMemPoolImportPointer %p %d %d", pool, in->reserved[0], in->reserved[63]);
	*p = 0x7000;
	return 0;
}

EXPORT CUresult cuIpcGetEventHandle(opaque *out, handle e)
{
	note("cuIpcGetEventHandle %p", e);
	for (int i = 0; i < 64; i++)
		out->reserved[i] = (unsigned char)(64 - i);
	return 0;
}

EXPORT CUresult cuIpcOpenEventHandle(handle *e, opaque in)
{
	note("cuIpcOpenEventHandle %d %d", in.reserved[0], in.reserved[63]);
	*e = HANDLE(0x42);
	return 0;
}

typedef struct { int order; location src, dst; unsigned flags; } copy_attributes;

EXPORT CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, copy_attributes *attrs,
	size_t *first, size_t attr_count, handle s)
{
	note("cuMemcpyBatchAsync %zu: %#llx %#llx %zu, %zu: %d %d %u from %zu, %p", count, (unsigned long long)dsts[count - 1],
		(unsigned long long)srcs[count - 1], sizes[count - 1], attr_count, attrs[0].order, attrs[0].dst.id, attrs[0].flags, first[0], s);
	return 0;
}

EXPORT CUresult cuMemPrefetchBatchAsync(CUdeviceptr *ptrs, size_t *sizes, size_t count, location *at, size_t *first, size_t at_count,
	unsigned long long flags, handle s)
{
	note("cuMemPrefetchBatchAsync %zu: %#llx %zu, %zu: %d %d from %zu, %llu %p", count, (unsigned long long)ptrs[count - 1],
		sizes[count - 1], at_count, at[0].type, at[0].id, first[0], flags, s);
	return 0;
}

EXPORT CUresult cuModuleEnumerateFunctions(handle *f, unsigned n, handle m)
{
	note("cuModuleEnumerateFunctions %u %p", n, m);
	f[0] = HANDLE(20);
	f[1] = HANDLE(21);
	return 0;
}

EXPORT CUresult cuFuncGetName(const char **name, handle f)
{
	*name = f == HANDLE(20) ? "first" : "second";
	return 0;
}

typedef struct { int id; char pad[4]; char value[64]; } launch_attribute;
typedef struct {
	unsigned grid[3], block[3], shared;
	handle stream;
	launch_attribute *attrs;
	unsigned count;
} launch_config;

EXPORT CUresult cuLaunchKernelEx(const launch_config *c, handle f, void **params, void **extra)
{
	note("cuLaunchKernelEx %u,%u,%u %u,%u,%u %u %p attrs=%u:%d:%d f=%p params=%d,%g extra=%p",
		c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared,
		c->stream, c->count, c->attrs[0].id, *(int *)c->attrs[0].value, f,
		*(int *)params[0], *(double *)params[1], (void *)extra);
	return 0;
}

static int note_clusters(const char *call, const launch_config *c, handle f)
{
	note("%s f=%p %u %u %u attrs=%u:%d:%d", call, f, c->grid[0], c->block[0], c->shared, c->count, c->attrs[0].id,
		*(int *)c->attrs[0].value);
	return 0;
}

EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int *size, handle f, const launch_config *c)
{
	*size = 16;
	return note_clusters("cuOccupancyMaxPotentialClusterSize", c, f);
}

EXPORT CUresult cuOccupancyMaxActiveClusters(int *clusters, handle f, const launch_config *c)
{
	*clusters = 33;
	return note_clusters("cuOccupancyMaxActiveClusters", c, f);
}

#include "libcuda_graph.h"

static CUresult unimplemented(void) { return 999; }

// What a generated function returns: bits that no other output has, and a sign.
#define OUTPUT(type, i) (type)(0xf8e7d6c5b4a39281u + (i))
#define NUMBER(v) (unsigned long long)(v)

#include "zlibcuda.h"

#ifndef WITHOUT_GET_PROC_ADDRESS
static int missing(const char *symbol)
{
	const char *list = getenv("STANDIN_MISSING");
	const char *at = list != NULL ? strstr(list, symbol) : NULL;
	size_t n = strlen(symbol);
	return at != NULL && (at == list || at[-1] == ',') && (at[n] == 0 || at[n] == ',');
}

// What it does not implement it has all the same, as a call that returns 999.
EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **found, int version, uint64_t flags, int *status)
{
	note("lookup %s %d %llu", symbol, version, (unsigned long long)flags);
	*found = NULL;
	*status = missing(symbol) ? 1 : 0; // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
	if (*status != 0)
		return 0;
	*found = (void *)unimplemented;
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
		if (strcmp(calls[i].name, symbol) == 0)
			*found = calls[i].address;
	return 0;
}
#endif
