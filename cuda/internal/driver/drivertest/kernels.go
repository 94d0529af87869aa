// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package drivertest

import "github.com/cudago/cudago/cuda/internal/driver"

// kernels is PTX for every device of compute capability 7.5 or later.
const kernels = `.version 6.4
.target sm_75
.address_size 64

.visible .global .align 4 .u32 table[4] = {10, 20, 30, 40};

// y[i] += a * x[i]
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
	.reg .pred %p;
	.reg .f32 %f<4>;
	.reg .b32 %r<5>;
	.reg .b64 %d<6>;
	ld.param.f32 %f0, [a];
	ld.param.u64 %d0, [x];
	ld.param.u64 %d1, [y];
	ld.param.u32 %r0, [n];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.u32 %r4, %r1, %r2, %r3;
	setp.ge.u32 %p, %r4, %r0;
	@%p bra done;
	mul.wide.u32 %d2, %r4, 4;
	add.u64 %d3, %d0, %d2;
	add.u64 %d4, %d1, %d2;
	ld.global.f32 %f1, [%d3];
	ld.global.f32 %f2, [%d4];
	fma.rn.f32 %f3, %f0, %f1, %f2;
	st.global.f32 [%d4], %f3;
done:
	ret;
}

// *p = *p * factor + addend: the order of launches shows in the result.
.visible .entry step(.param .u64 p, .param .u32 factor, .param .u32 addend)
{
	.reg .b32 %r<4>;
	.reg .b64 %d;
	ld.param.u64 %d, [p];
	ld.param.u32 %r0, [factor];
	ld.param.u32 %r1, [addend];
	ld.global.u32 %r2, [%d];
	mad.lo.u32 %r3, %r2, %r0, %r1;
	st.global.u32 [%d], %r3;
	ret;
}

// Runs until *flag is not zero.
.visible .entry hold(.param .u64 flag)
{
	.reg .pred %p;
	.reg .b32 %r;
	.reg .b64 %d;
	ld.param.u64 %d, [flag];
again:
	ld.volatile.global.u32 %r, [%d];
	setp.eq.u32 %p, %r, 0;
	@%p bra again;
	ret;
}

// *out = the dynamic shared memory's size
.extern .shared .align 4 .b8 dynamic[];
.visible .entry shared_size(.param .u64 out)
{
	.reg .b32 %r;
	.reg .b64 %d;
	ld.param.u64 %d, [out];
	mov.u32 %r, %dynamic_smem_size;
	st.global.u32 [%d], %r;
	ret;
}

// out[0] = table[index]
.visible .entry look_up(.param .u64 out, .param .u32 index)
{
	.reg .b32 %r<2>;
	.reg .b64 %d<4>;
	ld.param.u64 %d0, [out];
	ld.param.u32 %r0, [index];
	mov.u64 %d1, table;
	mul.wide.u32 %d2, %r0, 4;
	add.u64 %d3, %d1, %d2;
	ld.global.u32 %r1, [%d3];
	st.global.u32 [%d0], %r1;
	ret;
}

.visible .entry nothing()
{
	ret;
}

.visible .entry small_blocks() .maxntid 64
{
	ret;
}
`

// kernelNames are the kernels in kernels.
var kernelNames = []string{"saxpy", "step", "hold", "shared_size", "look_up", "nothing", "small_blocks"}

// module loads kernels for the length of the test.
func (s *suite) module() driver.CUmodule {
	s.Helper()
	m, log, r := s.CuModuleLoadDataEx([]byte(kernels))
	if r != driver.CUDA_SUCCESS {
		s.Fatalf("%s: %s", r, log)
	}
	s.cleanup(func() { s.CuModuleUnload(m) })
	return m
}

// loadKernels loads all kernels before any of them runs: loading one may wait
// for the device, which must not happen behind a closed gate.
func (s *suite) loadKernels() {
	m := s.module()
	s.kernels = map[string]driver.CUfunction{}
	for _, name := range kernelNames {
		f, r := s.CuModuleGetFunction(m, name)
		s.ok(r)
		s.kernels[name] = f
	}
}

func (s *suite) kernel(name string) driver.CUfunction { return s.kernels[name] }

// launch runs one thread.
func (s *suite) launch(st driver.CUstream, f driver.CUfunction, args ...any) driver.CUresult {
	s.Helper()
	return s.CuLaunchKernelEx(&driver.CUlaunchConfig{
		GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1, HStream: st,
	}, f, s.params(args...))
}

// kernelNode describes a node that runs one thread.
func (s *suite) kernelNode(f driver.CUfunction, args ...any) *driver.CUDA_KERNEL_NODE_PARAMS {
	s.Helper()
	return &driver.CUDA_KERNEL_NODE_PARAMS{
		Func: f, GridDimX: 1, GridDimY: 1, GridDimZ: 1, BlockDimX: 1, BlockDimY: 1, BlockDimZ: 1,
		KernelParams: s.params(args...),
	}
}
