// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Functions that Python calls and that make the driver's call, with what was
// prepared, and nothing else: what a call costs from Python at least. Nothing is
// included of CUDA or Python. Prototypes: cuda.h, CUDA 12.4; PyCFunctionFast and
// PyCFunctionFastWithKeywords, methodobject.h, CPython 3.11.

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef void *handle;
typedef uint64_t CUdeviceptr;

// What the calls are made with. Python writes it.
struct prepared {
	CUresult (*cuLaunchKernel)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned, handle, void **, void **);
	CUresult (*cuGraphLaunch)(handle, handle);
	CUresult (*cuGraphExecKernelNodeSetParams)(handle, handle, const void *);
	CUresult (*cuMemcpyAsync)(CUdeviceptr, CUdeviceptr, size_t, handle);
	CUresult (*cuEventRecord)(handle, handle);
	void (*Py_IncRef)(void *);
	void *none;
	handle stream, kernel, event, execs[4], node;
	void **params;
	const void *node_params;
	CUdeviceptr dst, src;
	size_t size;
	unsigned block;
	CUresult failed; // the last call that did
} p;

static void *done(CUresult r)
{
	if (r != 0)
		p.failed = r;
	p.Py_IncRef(p.none);
	return p.none;
}

#define FAST void *self, void *const *args, ptrdiff_t n
#define KEYWORDS FAST, void *names

void *launch_kernel(KEYWORDS)
{
	return done(p.cuLaunchKernel(p.kernel, 1, 1, 1, p.block, 1, 1, 0, p.stream, p.params, NULL));
}

void *launch_graph_0(FAST) { return done(p.cuGraphLaunch(p.execs[0], p.stream)); }
void *launch_graph_1(FAST) { return done(p.cuGraphLaunch(p.execs[1], p.stream)); }
void *launch_graph_2(FAST) { return done(p.cuGraphLaunch(p.execs[2], p.stream)); }
void *update_node(KEYWORDS) { return done(p.cuGraphExecKernelNodeSetParams(p.execs[3], p.node, p.node_params)); }
void *copy(KEYWORDS) { return done(p.cuMemcpyAsync(p.dst, p.src, p.size, p.stream)); }
void *record(FAST) { return done(p.cuEventRecord(p.event, p.stream)); }
