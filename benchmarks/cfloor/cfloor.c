// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Driver calls in a C loop: what a call costs at least. Python finds the
// calls' addresses, prepares what they need and compiles this file; nothing is
// included of CUDA, so that any C compiler will do. Prototypes: cuda.h, CUDA
// 12.4.
//
// Each loop returns the nanoseconds that `calls` calls took, or the negative
// CUresult of a call that failed.

#define _GNU_SOURCE // clock_gettime under -std=c99

#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef int CUresult;
typedef void *handle;
typedef uint64_t CUdeviceptr;

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#define LOOP(call) \
	CUresult r = 0; \
	int64_t start = now(); \
	for (int64_t i = 0; i < calls && r == 0; i++) \
		r = call; \
	return r == 0 ? now() - start : -(int64_t)r

int64_t launch_kernel(
	CUresult (*cuLaunchKernel)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, handle, void **, void **),
	int64_t calls, handle kernel, unsigned block, handle stream, void **params)
{
	LOOP(cuLaunchKernel(kernel, 1, 1, 1, block, 1, 1, 0, stream, params, NULL));
}

// The capture's begin and end count too.
int64_t capture_kernels(
	CUresult (*cuStreamBeginCapture)(handle, int),
	CUresult (*cuLaunchKernel)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, handle, void **, void **),
	CUresult (*cuStreamEndCapture)(handle, handle *),
	int64_t calls, handle kernel, unsigned block, handle stream, void **params, handle *graph)
{
	CUresult r = 0, ended;
	int64_t start = now();
	if ((r = cuStreamBeginCapture(stream, 0)) != 0)
		return -(int64_t)r;
	for (int64_t i = 0; i < calls && r == 0; i++)
		r = cuLaunchKernel(kernel, 1, 1, 1, block, 1, 1, 0, stream, params, NULL);
	ended = cuStreamEndCapture(stream, graph);
	r = r != 0 ? r : ended;
	return r == 0 ? now() - start : -(int64_t)r;
}

int64_t launch_graph(CUresult (*cuGraphLaunch)(handle, handle), int64_t calls, handle exec, handle stream)
{
	LOOP(cuGraphLaunch(exec, stream));
}

// Each node depends on the one before.
int64_t add_kernel_node(
	CUresult (*cuGraphAddKernelNode)(handle *, handle, const handle *, size_t, const void *),
	int64_t calls, handle graph, handle previous, const void *params)
{
	handle node = previous;
	LOOP((previous = node, cuGraphAddKernelNode(&node, graph, &previous, 1, params)));
}

int64_t add_memcpy_node(
	CUresult (*cuGraphAddMemcpyNode)(handle *, handle, const handle *, size_t, const void *, handle),
	int64_t calls, handle graph, handle previous, const void *params, handle context)
{
	handle node = previous;
	LOOP((previous = node, cuGraphAddMemcpyNode(&node, graph, &previous, 1, params, context)));
}

int64_t alloc_and_free(
	CUresult (*cuMemAllocAsync)(CUdeviceptr *, size_t, handle), CUresult (*cuMemFreeAsync)(CUdeviceptr, handle),
	int64_t calls, size_t size, handle stream)
{
	CUdeviceptr p = 0;
	LOOP((r = cuMemAllocAsync(&p, size, stream)) != 0 ? r : cuMemFreeAsync(p, stream));
}

int64_t copy(
	CUresult (*cuMemcpyAsync)(CUdeviceptr, CUdeviceptr, size_t, handle),
	int64_t calls, CUdeviceptr dst, CUdeviceptr src, size_t size, handle stream)
{
	LOOP(cuMemcpyAsync(dst, src, size, stream));
}

int64_t record_event(CUresult (*cuEventRecord)(handle, handle), int64_t calls, handle event, handle stream)
{
	LOOP(cuEventRecord(event, stream));
}

int64_t wait_for_stream(CUresult (*cuStreamSynchronize)(handle), int64_t calls, handle stream)
{
	LOOP(cuStreamSynchronize(stream));
}

int64_t launch_graph_and_wait(CUresult (*cuGraphLaunch)(handle, handle), CUresult (*cuStreamSynchronize)(handle),
	int64_t calls, handle exec, handle stream)
{
	LOOP((r = cuGraphLaunch(exec, stream)) != 0 ? r : cuStreamSynchronize(stream));
}

int64_t update_kernel_node(
	CUresult (*cuGraphExecKernelNodeSetParams)(handle, handle, const void *),
	int64_t calls, handle exec, handle node, const void *params)
{
	LOOP(cuGraphExecKernelNodeSetParams(exec, node, params));
}

int64_t update_memcpy_node(
	CUresult (*cuGraphExecMemcpyNodeSetParams)(handle, handle, const void *, handle),
	int64_t calls, handle exec, handle node, const void *params, handle context)
{
	LOOP(cuGraphExecMemcpyNodeSetParams(exec, node, params, context));
}

// A chain of `calls` kernel nodes, from nothing to nothing.
int64_t build_graph(
	CUresult (*cuGraphCreate)(handle *, unsigned),
	CUresult (*cuGraphAddKernelNode)(handle *, handle, const handle *, size_t, const void *),
	CUresult (*cuGraphInstantiateWithFlags)(handle *, handle, unsigned long long),
	CUresult (*cuGraphExecDestroy)(handle), CUresult (*cuGraphDestroy)(handle),
	int64_t calls, const void *params)
{
	handle graph = NULL, exec = NULL, node = NULL, previous;
	int64_t start = now();
	CUresult r = cuGraphCreate(&graph, 0);
	for (int64_t i = 0; i < calls && r == 0; i++) {
		previous = node;
		r = cuGraphAddKernelNode(&node, graph, i > 0 ? &previous : NULL, i > 0, params);
	}
	if (r == 0 && (r = cuGraphInstantiateWithFlags(&exec, graph, 0)) == 0)
		r = cuGraphExecDestroy(exec);
	CUresult destroyed = graph != NULL ? cuGraphDestroy(graph) : 0;
	r = r != 0 ? r : destroyed;
	return r == 0 ? now() - start : -(int64_t)r;
}
