// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"fmt"
	"slices"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A Partition is a part of a device's multiprocessors (SMs). It reserves
// nothing: partitions may overlap, and exist as long as they are remembered.
type Partition struct {
	dev *Device
	res driver.CUdevResource
}

// SMs returns the partition that is all of d. It calls cuDeviceGetDevResource.
//
// Errors: [ErrorNotSupported] if the driver has no green contexts, which came
// with CUDA 12.4.
func (d *Device) SMs() (Partition, error) {
	res, r := d.drv.api.CuDeviceGetDevResource(d.h, driver.CU_DEV_RESOURCE_TYPE_SM)
	return Partition{d, res}, check("cuDeviceGetDevResource", r)
}

// Bytes returns the driver's CUdevResource.
func (p Partition) Bytes() []byte { return p.res.Bytes() }

// PartitionOf undoes [Partition.Bytes].
//
// Errors: an [*ArgumentError] if b has not the size of a CUdevResource.
func (d *Device) PartitionOf(b []byte) (Partition, error) {
	res, ok := driver.ResourceOf(b)
	if !ok {
		return Partition{}, badValue("part", "must be what a split returned, got %d bytes", len(b))
	}
	return Partition{d, res}, nil
}

// SMCount returns how many SMs p has.
func (p Partition) SMCount() int { return int(p.res.SmCount) }

// Granularity returns the least size of a part of p, and what each size is a
// multiple of; zeros if the driver does not tell (before CUDA 13.0).
func (p Partition) Granularity() (least, multiple int) {
	return int(p.res.MinSmPartitionSize), int(p.res.SmCoscheduledAlignment)
}

// A SplitOptions says how to split a [Partition].
type SplitOptions struct {
	// Count is the least number of SMs of each part. The driver rounds it up to
	// what the device can separate.
	Count int
	// Groups is the greatest number of parts; zero for as many as there can be.
	Groups int
	// Fine allows parts whose SMs do not lie together: the parts can be smaller,
	// and kernels in them may lack large clusters.
	Fine bool
}

// Split makes parts of the same size that share no SM. rest is what is left, with
// no SMs if nothing is. p must be [Device.SMs]. It calls
// cuDevSmResourceSplitByCount.
//
// Errors: an [*ArgumentError] if Count is not 1 to SMCount, or Groups is
// negative; an [*Error] if not even one part can be made.
func (p Partition) Split(o SplitOptions) (parts []Partition, rest Partition, err error) {
	if o.Count < 1 || o.Count > p.SMCount() {
		return nil, rest, badValue("count", "must be 1 to %d, the SMs of %v, got %d", p.SMCount(), p.dev, o.Count)
	}
	if o.Groups < 0 {
		return nil, rest, badValue("groups", "must be at least 1, got %d", o.Groups)
	}
	var flags uint32
	if o.Fine {
		flags = driver.CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING
	}
	api := p.dev.drv.api
	n, _, r := api.CuDevSmResourceSplitByCount(nil, &p.res, flags, uint32(o.Count))
	if o.Groups > 0 && o.Groups < int(n) {
		n = uint32(o.Groups)
	}
	if r != driver.CUDA_SUCCESS || n == 0 {
		return nil, rest, p.failed("cuDevSmResourceSplitByCount", r, o.Count)
	}
	groups := make([]driver.CUdevResource, n)
	n, left, r := api.CuDevSmResourceSplitByCount(groups, &p.res, flags, uint32(o.Count))
	if r != driver.CUDA_SUCCESS {
		return nil, rest, p.failed("cuDevSmResourceSplitByCount", r, o.Count)
	}
	for _, g := range groups[:n] {
		parts = append(parts, Partition{p.dev, g})
	}
	return parts, Partition{p.dev, left}, nil
}

// failed explains why a part of count SMs could not be made.
func (p Partition) failed(op string, r driver.CUresult, count int) error {
	if r == driver.CUDA_ERROR_NOT_SUPPORTED {
		return check(op, r)
	}
	if r == driver.CUDA_SUCCESS {
		r = driver.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
	}
	detail := fmt.Sprintf("no part of %d SMs can be made of the %d of %v", count, p.SMCount(), p.dev)
	if least, multiple := p.Granularity(); least > 0 {
		detail += fmt.Sprintf(": parts have at least %d, and a multiple of %d", least, multiple)
	}
	return &Error{Op: op, Result: Result(r), Detail: detail}
}

// A GreenContext is a [Partition] with streams, whose kernels run on its SMs
// alone. Memory, modules and events are those of the device's [Context]: only
// streams belong to a green context.
//
// # Lifetime
//
// Close it when done. Its streams keep it, as do graphs that were captured in
// them: see [Stream.HoldGreenContext]. A stream that others have been given
// ([Stream.Expose]) is never destroyed, and so its green context is not either.
// While one exists the device cannot be reset, because it holds the [Context].
//
// Safe for concurrent use.
type GreenContext struct {
	ctx     *Context
	h       driver.CUgreenCtx // immutable
	smCount int               // immutable
	uses    uses              // its streams, and who holds it
}

// NewGreenContext creates a green context of parts, which one
// [Partition.Split] has made. It calls cuDevResourceGenerateDesc and
// cuGreenCtxCreate.
//
// Errors: an [*ArgumentError] without parts, or if one is of another device; an
// [*Error].
func (c *Context) NewGreenContext(parts ...Partition) (*GreenContext, error) {
	if len(parts) == 0 {
		return nil, badValue("parts", "must be at least one")
	}
	var resources []driver.CUdevResource
	for _, p := range parts {
		if p.dev != c.dev {
			return nil, badValue("parts", "must be of %v, got one of %v", c.dev, p.dev)
		}
		if p.SMCount() == 0 || slices.Contains(resources, p.res) {
			return nil, badValue("parts", "must be different parts, each with SMs")
		}
		resources = append(resources, p.res)
	}
	leave, err := c.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	api := c.drv.api
	desc, r := api.CuDevResourceGenerateDesc(resources)
	if err := c.check("cuDevResourceGenerateDesc", r); err != nil {
		return nil, err
	}
	h, r := api.CuGreenCtxCreate(desc, c.dev.h, driver.CU_GREEN_CTX_DEFAULT_STREAM)
	if err := c.check("cuGreenCtxCreate", r); err != nil {
		return nil, err
	}
	c.drv.live.greens.Add(1)
	c.greens.Add(1)
	g := &GreenContext{ctx: c, h: h}
	res, r := api.CuGreenCtxGetDevResource(h, driver.CU_DEV_RESOURCE_TYPE_SM)
	if err := c.check("cuGreenCtxGetDevResource", r); err != nil {
		_ = g.Close() // releases report what goes wrong by themselves
		return nil, err
	}
	g.smCount = int(res.SmCount)
	return g, nil
}

// Handle returns the CUgreenCtx.
func (g *GreenContext) Handle() uintptr { return uintptr(g.h) }

// SMCount returns how many SMs g has, according to the driver.
func (g *GreenContext) SMCount() int { return g.smCount }

// IsClosed reports whether Close was called.
func (g *GreenContext) IsClosed() bool { return g.uses.closed() }

// NewStream creates a non-blocking stream whose kernels run on g's SMs. It calls
// cuGreenCtxStreamCreate, which came with CUDA 12.5.
//
// Lifetime: the caller must Close it. It keeps g.
//
// Errors: [ErrClosed]; an [*ArgumentError] for a blocking stream, which a green
// context does not have; an [*Error].
func (g *GreenContext) NewStream(o StreamOptions) (*Stream, error) {
	if o.Blocking {
		return nil, badValue("blocking", "streams of a green context cannot wait for the default stream")
	}
	c := g.ctx
	leave, err := c.Enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if !g.uses.begin() {
		return nil, &ClosedError{"green context"}
	}
	like := streamLike{driver.CU_STREAM_NON_BLOCKING, clampInt32(o.Priority), g}
	h, again := c.parked.take(like, c.isIdle)
	if again {
		g.end() // it has kept its own use
	} else {
		var r driver.CUresult
		h, r = c.drv.api.CuGreenCtxStreamCreate(g.h, like.flags, like.priority)
		if err := c.check("cuGreenCtxStreamCreate", r); err != nil {
			g.end()
			return nil, err
		}
	}
	c.drv.live.streams.Add(1)
	s := &Stream{ctx: c, h: h, name: o.Name, like: like}
	s.exposed.Store(again)
	return s, nil
}

// HoldGreenContext keeps the green context of s, if it has one, until release is
// called: for a graph that was captured in s, whose kernels run there even when
// s is gone. release is nil if s has none.
//
// Preconditions: s is in use.
func (s *Stream) HoldGreenContext() (release func()) {
	g := s.like.green
	if g == nil {
		return nil
	}
	g.uses.state.Add(2) // also a closed one: s keeps it
	return g.end
}

func (g *GreenContext) end() {
	if g.uses.end() {
		g.destroy()
	}
}

// Close ends the use of g. It does not wait for work: g lives until its streams
// are gone, and the graphs that hold it. Closing twice is fine. The last user
// calls cuGreenCtxDestroy.
func (g *GreenContext) Close() error {
	if g.uses.close() {
		g.destroy()
	}
	return nil
}

func (g *GreenContext) destroy() {
	c := g.ctx
	c.dispose("cuGreenCtxDestroy", "green context", nil, &c.drv.live.greens, func(api driver.API) driver.CUresult {
		return api.CuGreenCtxDestroy(g.h)
	}, func() { c.greens.Add(-1) })
}
