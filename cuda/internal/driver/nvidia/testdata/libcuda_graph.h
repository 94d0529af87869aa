// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// The graph calls of libcuda.c, which includes this.

static void note_deps(const char *call, handle g, const handle *deps, size_t n)
{
	note("%s %p deps=%zu:%p", call, g, n, n > 0 ? deps[n - 1] : NULL);
}

typedef struct {
	handle func;
	unsigned grid[3], block[3], shared;
	void **params, **extra;
	handle kern, ctx;
} kernel_params;

EXPORT CUresult cuGraphAddKernelNode_v2(handle *node, handle g, const handle *deps, size_t n, const kernel_params *p)
{
	note_deps("cuGraphAddKernelNode", g, deps, n);
	note("  %p %u,%u,%u %u,%u,%u %u %d %p %p %p", p->func, p->grid[0], p->grid[1], p->grid[2],
		p->block[0], p->block[1], p->block[2], p->shared, *(int *)p->params[0], (void *)p->extra, p->kern, p->ctx);
	*node = HANDLE(30);
	return 0;
}

EXPORT CUresult cuGraphKernelNodeGetParams_v2(handle node, kernel_params *p)
{
	static int value = 42;
	static void *params[] = {&value};
	note("cuGraphKernelNodeGetParams %p", node);
	p->func = HANDLE(13);
	p->grid[2] = 3;
	p->block[0] = 128;
	p->params = params;
	p->ctx = HANDLE(2);
	return 0;
}

typedef struct {
	size_t x, y, z, lod;
	int type;
	const void *host;
	CUdeviceptr device;
	handle array;
	void *reserved;
	size_t pitch, height;
} copy_side;
typedef struct { copy_side src, dst; size_t width, height, depth; } memcpy_params;

EXPORT CUresult cuGraphAddMemcpyNode(handle *node, handle g, const handle *deps, size_t n,
	const memcpy_params *p, handle ctx)
{
	note_deps("cuGraphAddMemcpyNode", g, deps, n);
	note("  %d %p %d %#llx %zu %zu %zu %p", p->src.type, p->src.host, p->dst.type,
		(unsigned long long)p->dst.device, p->width, p->height, p->depth, ctx);
	*node = HANDLE(31);
	return 0;
}

EXPORT CUresult cuGraphExecMemcpyNodeSetParams(handle x, handle node, const memcpy_params *p, handle ctx)
{
	note("cuGraphExecMemcpyNodeSetParams %p %p %zu %p", x, node, p->width, ctx);
	return 910;
}

typedef struct { CUdeviceptr dst; size_t pitch; unsigned value, element; size_t width, height; } memset_params;

EXPORT CUresult cuGraphAddMemsetNode(handle *node, handle g, const handle *deps, size_t n,
	const memset_params *p, handle ctx)
{
	note_deps("cuGraphAddMemsetNode", g, deps, n);
	note("  %#llx %zu %u %u %zu %zu %p", (unsigned long long)p->dst, p->pitch, p->value, p->element,
		p->width, p->height, ctx);
	*node = HANDLE(32);
	return 0;
}

typedef struct { int operation; CUdeviceptr address; uint64_t value; unsigned flags; CUdeviceptr alias, pad; } mem_op;
typedef struct { handle ctx; unsigned count; mem_op *ops; unsigned flags; } batch_params;

EXPORT CUresult cuGraphAddBatchMemOpNode(handle *node, handle g, const handle *deps, size_t n, const batch_params *p)
{
	note_deps("cuGraphAddBatchMemOpNode", g, deps, n);
	note("  %p %u %u", p->ctx, p->count, p->flags);
	for (unsigned i = 0; i < p->count; i++)
		note("  %d %#llx %llu %u", p->ops[i].operation, (unsigned long long)p->ops[i].address,
			(unsigned long long)p->ops[i].value, p->ops[i].flags);
	*node = HANDLE(33);
	return 0;
}

typedef struct { int type; union { int fd; struct { void *handle; const void *name; } win32; } handle; size_t size; unsigned flags, reserved[16]; } memory_desc;
typedef struct { size_t offset, size; unsigned flags, reserved[16]; } memory_part;
typedef struct { int type; union { int fd; struct { void *handle; const void *name; } win32; } handle; unsigned flags, reserved[16]; } semaphore_desc;
typedef struct {
	struct { struct { unsigned long long value; } fence; unsigned long long sync, key; unsigned reserved[12]; } params;
	unsigned flags, reserved[16];
} signal_params;
typedef struct {
	struct {
		struct { unsigned long long value; } fence;
		unsigned long long sync;
		struct { unsigned long long key; unsigned timeout; } mutex;
		unsigned reserved[10];
	} params;
	unsigned flags, reserved[16];
} wait_params;
typedef struct { handle *semaphores; const signal_params *params; unsigned count; } signal_node_params;
typedef struct { handle *semaphores; const wait_params *params; unsigned count; } wait_node_params;

EXPORT CUresult cuImportExternalMemory(handle *memory, const memory_desc *p)
{
	note("cuImportExternalMemory %d %d %zu %u", p->type, p->handle.fd, p->size, p->flags);
	*memory = HANDLE(0x51);
	return 0;
}

EXPORT CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *p, handle memory, const memory_part *part)
{
	note("cuExternalMemoryGetMappedBuffer %p %zu %zu %u", memory, part->offset, part->size, part->flags);
	*p = 0x7f0000000000;
	return 0;
}

EXPORT CUresult cuImportExternalSemaphore(handle *semaphore, const semaphore_desc *p)
{
	note("cuImportExternalSemaphore %d %d %u", p->type, p->handle.fd, p->flags);
	*semaphore = HANDLE(0x52);
	return 0;
}

#define NOTE_SEMAPHORES(list, p, n) \
	for (unsigned i = 0; i < (n); i++) \
		note("  %p %llu %u", (list)[i], (p)[i].params.fence.value, (p)[i].flags)

EXPORT CUresult cuSignalExternalSemaphoresAsync(handle *list, const signal_params *p, unsigned n, handle stream)
{
	note("cuSignalExternalSemaphoresAsync %u %p", n, stream);
	NOTE_SEMAPHORES(list, p, n);
	return 0;
}

EXPORT CUresult cuWaitExternalSemaphoresAsync(handle *list, const wait_params *p, unsigned n, handle stream)
{
	note("cuWaitExternalSemaphoresAsync %u %p", n, stream);
	NOTE_SEMAPHORES(list, p, n);
	return 0;
}

EXPORT CUresult cuGraphAddExternalSemaphoresSignalNode(handle *node, handle g, const handle *deps, size_t n, const signal_node_params *p)
{
	note_deps("cuGraphAddExternalSemaphoresSignalNode", g, deps, n);
	NOTE_SEMAPHORES(p->semaphores, p->params, p->count);
	*node = HANDLE(34);
	return 0;
}

EXPORT CUresult cuGraphExecExternalSemaphoresWaitNodeSetParams(handle x, handle node, const wait_node_params *p)
{
	note("cuGraphExecExternalSemaphoresWaitNodeSetParams %p %p", x, node);
	NOTE_SEMAPHORES(p->semaphores, p->params, p->count);
	return 0;
}

typedef struct { void (*fn)(void *); void *data; } host_params;

EXPORT CUresult cuGraphAddHostNode(handle *node, handle g, const handle *deps, size_t n, const host_params *p)
{
	note_deps("cuGraphAddHostNode", g, deps, n);
	p->fn(p->data);
	*node = HANDLE(33);
	return 0;
}

typedef struct {
	struct { int alloc, handles, type, id; void *security; size_t max; uint16_t usage; uint8_t reserved[54]; } pool;
	const access_desc *access;
	size_t access_count, size;
	CUdeviceptr p;
} alloc_params;

EXPORT CUresult cuGraphAddMemAllocNode(handle *node, handle g, const handle *deps, size_t n, alloc_params *p)
{
	note_deps("cuGraphAddMemAllocNode", g, deps, n);
	note("  %d %d %d %zu %zu", p->pool.alloc, p->pool.type, p->pool.id, p->access_count, p->size);
	for (size_t i = 0; i < p->access_count; i++)
		note("  %d %d %d", p->access[i].location.type, p->access[i].location.id, p->access[i].flags);
	p->p = 0x420000000;
	*node = HANDLE(38);
	return 0;
}

EXPORT CUresult cuGraphAddMemFreeNode(handle *node, handle g, const handle *deps, size_t n, CUdeviceptr p)
{
	note_deps("cuGraphAddMemFreeNode", g, deps, n);
	note("  %#llx", (unsigned long long)p);
	*node = HANDLE(39);
	return 0;
}

typedef struct {
	int type, reserved[3];
	union {
		long long reserved1[29];
		struct { uint64_t handle; int type; unsigned size; handle *graphs; handle ctx; } conditional;
		struct { handle graph; int ownership; } child;
	};
	long long reserved2;
} node_params;

EXPORT CUresult cuGraphAddNode_v2(handle *node, handle g, const handle *deps, const void *edges, size_t n, node_params *p)
{
	static handle bodies[] = {HANDLE(41), HANDLE(42)};
	note_deps("cuGraphAddNode", g, deps, n);
	if (p->type == 4) {
		note("  4 %p %d edges=%d", p->child.graph, p->child.ownership, edges != NULL);
		*node = HANDLE(43);
		return 0;
	}
	note("  %d %#llx %d %u %p edges=%d", p->type, (unsigned long long)p->conditional.handle, p->conditional.type,
		p->conditional.size, p->conditional.ctx, edges != NULL);
	p->conditional.graphs = bodies;
	*node = HANDLE(40);
	return p->conditional.size == 2 ? 0 : 1;
}

EXPORT CUresult cuGraphGetEdges_v2(handle g, handle *from, handle *to, uint64_t *edges, size_t *count)
{
	note("cuGraphGetEdges %p arrays=%d", g, from != NULL && to != NULL && edges != NULL);
	if (from != NULL) {
		from[0] = HANDLE(1), to[0] = HANDLE(2), edges[0] = 0;
		from[1] = HANDLE(3), to[1] = HANDLE(4), edges[1] = 0x010001; /* port 1 to 0, type 1 */
	}
	*count = g == HANDLE(5) ? 2 : 0;
	return 0;
}

EXPORT CUresult cuGraphRemoveDependencies_v2(handle g, const handle *from, const handle *to, const uint64_t *edges, size_t n)
{
	note("cuGraphRemoveDependencies %p %p %p %#llx %zu", g, from[n - 1], to[n - 1], (unsigned long long)edges[n - 1], n);
	return 0;
}

typedef struct { uint64_t flags; handle upload_stream, error_node; int result; } instantiate_params;

EXPORT CUresult cuGraphInstantiateWithParams(handle *x, handle g, instantiate_params *p)
{
	note("cuGraphInstantiateWithParams %p %llu %p", g, (unsigned long long)p->flags, p->upload_stream);
	p->error_node = HANDLE(35);
	p->result = 2;
	*x = HANDLE(34);
	return 0;
}

typedef struct { int result; handle error_node, error_from; } update_info;

EXPORT CUresult cuGraphExecUpdate_v2(handle x, handle g, update_info *p)
{
	note("cuGraphExecUpdate %p %p", x, g);
	p->result = 3;
	p->error_node = HANDLE(36);
	p->error_from = HANDLE(37);
	return 910;
}
