// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// opaque is an object that is nothing but a handle of the driver's: an array, a
// texture, a surface.
type opaque[H ~uint64 | ~uintptr] struct {
	ctx    *Context
	h      H // immutable
	kind   *opaqueKind[H]
	closed atomic.Bool
}

// opaqueKind is what objects of one type have in common.
type opaqueKind[H ~uint64 | ~uintptr] struct {
	name, create, destroy string // create and destroy are calls
	free                  func(driver.API, H) driver.CUresult
	count                 func(*liveCounts) *atomic.Int64
}

// newOpaque makes an object on c's device. Not ordered by streams. what says of a
// failed call what the driver was told.
func newOpaque[H ~uint64 | ~uintptr](c *Context, kind *opaqueKind[H], what func() string, create func(driver.API) (H, driver.CUresult)) (*opaque[H], error) {
	leave, err := c.enterRelaxed()
	if err != nil {
		return nil, err
	}
	defer leave()
	h, r := create(c.drv.api)
	if r != driver.CUDA_SUCCESS {
		return nil, c.fail(kind.create, r, what())
	}
	kind.count(&c.drv.live).Add(1)
	return &opaque[H]{ctx: c, h: h, kind: kind}, nil
}

// Handle returns the driver's handle.
func (o *opaque[H]) Handle() uint64 { return uint64(o.h) }

// Close ends the use of the object, by the call that destroys it. Closing twice is
// fine.
func (o *opaque[H]) Close() error {
	if o.closed.Swap(true) {
		return nil
	}
	k := o.kind
	o.ctx.dispose(k.destroy, k.name, nil, k.count(&o.ctx.drv.live), func(api driver.API) driver.CUresult { return k.free(api, o.h) }, nil)
	return nil
}
