// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package kernel

/*
#include "kernel.h"
*/
import "C"

import (
	"unsafe"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
	"github.com/cudago/cudago/pyext/stream"
)

//export cudagoMemcpyBox
func cudagoMemcpyBox(on, dst, src C.uint64_t, dstSide, srcSide C.int32_t, box *C.cudago_box, st *C.cudago_status) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		return cuda.Memcpy3D(BoxParams(uint64(dst), uint64(src), int32(dstSide), int32(srcSide), unsafe.Pointer(box)), s)
	})
}

// BoxParams makes a copy's parameters of a cudago_box, which is C memory: each
// package has a type of its own for it. dstSide and srcSide are SIDE_….
func BoxParams(dst, src uint64, dstSide, srcSide int32, box unsafe.Pointer) cuda.MemcpyParams {
	b := (*C.cudago_box)(box)
	return cuda.MemcpyParams{
		Dst: dst, Src: src, DstHost: dstSide == C.SIDE_HOST, SrcHost: srcSide == C.SIDE_HOST,
		DstArray: dstSide == C.SIDE_ARRAY, SrcArray: srcSide == C.SIDE_ARRAY,
		Size: uint64(b.width * b.rows * b.slices),
		Box: cuda.Box{
			Rows: uint64(b.rows), Slices: uint64(b.slices),
			Dst: cuda.Pitch{Row: uint64(b.dst_pitch), Rows: uint64(b.dst_height)},
			Src: cuda.Pitch{Row: uint64(b.src_pitch), Rows: uint64(b.src_height)},
		},
	}
}

//export cudagoMemcpyPeer
func cudagoMemcpyPeer(on, dst C.uint64_t, to C.int32_t, src C.uint64_t, from C.int32_t, size C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		there, err := border.ContextOf(int(to))
		if err != nil {
			return err
		}
		here, err := border.ContextOf(int(from))
		if err != nil {
			return err
		}
		return cuda.MemcpyPeer(uint64(dst), there, uint64(src), here, uint64(size), s)
	})
}

//export cudagoMemset
func cudagoMemset(on, dst C.uint64_t, value, width C.uint32_t, count C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		s, err := stream.Streams.Get(uint64(on))
		if err != nil {
			return err
		}
		return cuda.Memset(uint64(dst), uint32(value), int(width), uint64(count), s)
	})
}
