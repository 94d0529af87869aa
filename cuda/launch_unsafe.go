// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"runtime"
	"unsafe"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// Launch launches k with args, which are checked against its signature first:
//
//   - a [*Buffer], or nil for a null pointer, where the kernel has a pointer;
//   - a Go integer or bool that fits, where it has an integer;
//   - a Go float, or an integer that a float can represent, where it has one;
//   - a []byte of the parameter's size for a struct, or for anything else.
//
// It calls cuLaunchKernelEx.
//
// Stream-ordered on s; returns before completion. Captured as a kernel node.
// Values are copied before it returns. The caller must keep buffers open until
// the kernel has completed; if s is capturing, until the last graph with the
// node is gone.
//
// Errors: [ErrClosed]; an [*ArgumentError] that names the parameter, what it
// wants and what it got; an [*Error].
func Launch(s *Stream, cfg LaunchConfig, k *Kernel, args ...any) error {
	values, err := pack(k, args)
	if err != nil {
		return err
	}
	// The driver gets addresses of Go memory inside Go memory, which only pinned
	// memory may hold.
	var pin runtime.Pinner
	defer pin.Unpin()
	var params unsafe.Pointer
	if len(args) > 0 {
		pointers := make([]unsafe.Pointer, len(args))
		for i, p := range k.signature {
			if p.Size != 0 {
				pointers[i] = unsafe.Pointer(&values[p.Offset])
			}
		}
		pin.Pin(&values[0])
		pin.Pin(&pointers[0])
		params = unsafe.Pointer(&pointers[0])
	}
	return LaunchPacked(s, cfg, k, params)
}

// LaunchPacked is Launch with arguments that the caller has packed: params has
// the C type void**, one pointer per parameter, in C memory or pinned. Nothing
// about them is checked.
func LaunchPacked(s *Stream, cfg LaunchConfig, k *Kernel, params unsafe.Pointer) error {
	if s.ctx != k.m.ctx {
		return badValue("stream", "must be of %v, as the kernel is, got one of %v", k.Device(), s.Device())
	}
	if err := cfg.Validate(k.Device()); err != nil {
		return err
	}
	if err := k.begin(); err != nil {
		return err
	}
	defer k.m.Release()
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()

	grid, block := cfg.dims()
	config := &driver.CUlaunchConfig{
		GridDimX: grid[0], GridDimY: grid[1], GridDimZ: grid[2],
		BlockDimX: block[0], BlockDimY: block[1], BlockDimZ: block[2],
		SharedMemBytes: cfg.SharedMemory,
		HStream:        s.h,
	}
	var attrs [maxAttributes]driver.CUlaunchAttribute
	if n := cfg.attributes(&attrs); n > 0 {
		var pin runtime.Pinner
		defer pin.Unpin()
		pin.Pin(&attrs)
		config.Attrs, config.NumAttrs = unsafe.Pointer(&attrs), uint32(n)
	}
	if r := s.ctx.drv.api.CuLaunchKernelEx(config, k.h, params); r != driver.CUDA_SUCCESS {
		return launchError(s, &cfg, k, r)
	}
	return nil
}
