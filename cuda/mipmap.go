// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A MipmappedArray is an [Array] and smaller ones, its levels: each is half as wide,
// high and deep as the one before. Copies and surfaces reach the levels, textures
// all of it.
//
// # Lifetime
//
// Close it when nothing uses it or a level any more: no work, texture or surface.
type MipmappedArray struct {
	*opaque[driver.CUmipmappedArray]
}

var mipmappedArrayKind = opaqueKind[driver.CUmipmappedArray]{
	name: "mipmapped array", create: "cuMipmappedArrayCreate", destroy: "cuMipmappedArrayDestroy", free: driver.API.CuMipmappedArrayDestroy,
	count: func(l *liveCounts) *atomic.Int64 { return &l.mipmaps },
}

// NewMipmappedArray allocates an array of at most so many levels: no more than
// halve the sizes until all are 1. It calls cuMipmappedArrayCreate. Not ordered by
// streams.
//
// Errors: those of [Context.NewArray].
func (c *Context) NewMipmappedArray(p ArrayParams, levels uint32) (*MipmappedArray, error) {
	what := func() string { return fmt.Sprintf("%s, %d levels", p.String(), levels) }
	o, err := newOpaque(c, &mipmappedArrayKind, what, func(api driver.API) (driver.CUmipmappedArray, driver.CUresult) {
		return api.CuMipmappedArrayCreate(p.abi(), levels)
	})
	if err != nil {
		return nil, err
	}
	return &MipmappedArray{o}, nil
}

// Level returns the CUarray of a level, which lasts as long as m. It calls
// cuMipmappedArrayGetLevel.
//
// Errors: [ErrClosed] after Close; [ErrorInvalidValue] if there is no such level.
func (m *MipmappedArray) Level(level uint32) (uint64, error) {
	if m.closed.Load() {
		return 0, fmt.Errorf("mipmapped array: %w", ErrClosed)
	}
	leave, err := m.ctx.enterRelaxed()
	if err != nil {
		return 0, err
	}
	defer leave()
	h, r := m.ctx.drv.api.CuMipmappedArrayGetLevel(m.h, level)
	if r != driver.CUDA_SUCCESS {
		return 0, m.ctx.fail("cuMipmappedArrayGetLevel", r, fmt.Sprintf("level %d of %#x", level, m.h))
	}
	return uint64(h), nil
}
