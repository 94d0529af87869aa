// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// A green context here is bookkeeping: its streams run their kernels as all
// others do, because a simulated device has no SMs that could be busy.

// greenContext holds its device's primary context.
type greenContext struct {
	ctx       *context
	sms       uint32
	destroyed atomic.Bool
}

// partition is what a CUdevResource says of itself in its internal bytes.
type partition struct {
	ordinal, sms uint32
	split        uint64 // what splits of the same kind have in common; 0 for a whole device
	index        byte   // among the groups of its split
	whole        bool   // may be split
}

// greenDescriptor is what a green context is to be made of.
type greenDescriptor struct{ partition }

const partitionMark = 0x534D70617274 // tells resources of this driver from others

// smRules are the least size of a group of SMs and what it is a multiple of.
// From the CUDA Driver API, "Green Contexts", which calls them a guideline.
func (d *simulator) smRules(flags uint32) (least, multiple uint32) {
	switch {
	case flags&driver.CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING != 0:
		return 2, 2
	case d.config.major >= 9:
		return 8, 8
	case d.config.major == 8:
		return 4, 2
	}
	return 2, 2
}

func (d *simulator) resource(p partition) driver.CUdevResource {
	r := driver.CUdevResource{Type: driver.CU_DEV_RESOURCE_TYPE_SM, SmCount: p.sms}
	r.MinSmPartitionSize, r.SmCoscheduledAlignment = d.smRules(0)
	b := r.Internal[:]
	binary.NativeEndian.PutUint64(b, partitionMark)
	binary.NativeEndian.PutUint64(b[8:], p.split)
	binary.NativeEndian.PutUint32(b[16:], p.ordinal)
	b[20], b[21] = byte(toInt(p.whole)), p.index
	return r
}

// partitionOf reads what resource wrote.
func (d *simulator) partitionOf(r *driver.CUdevResource) (partition, driver.CUresult) {
	if r == nil {
		return partition{}, driver.CUDA_ERROR_INVALID_VALUE
	}
	if r.Type != driver.CU_DEV_RESOURCE_TYPE_SM {
		return partition{}, driver.CUDA_ERROR_INVALID_RESOURCE_TYPE
	}
	b := r.Internal[:]
	p := partition{
		ordinal: binary.NativeEndian.Uint32(b[16:]), sms: r.SmCount,
		split: binary.NativeEndian.Uint64(b[8:]), whole: b[20] != 0, index: b[21],
	}
	if binary.NativeEndian.Uint64(b) != partitionMark || int(p.ordinal) >= len(d.devices) || p.sms > multiprocessors {
		return partition{}, driver.CUDA_ERROR_INVALID_VALUE
	}
	return p, driver.CUDA_SUCCESS
}

func (d *simulator) CuDeviceGetDevResource(dev driver.CUdevice, typ driver.CUdevResourceType) (driver.CUdevResource, driver.CUresult) {
	v, r := d.device(dev)
	if r == driver.CUDA_SUCCESS {
		r = d.permitted()
	}
	if r != driver.CUDA_SUCCESS {
		return driver.CUdevResource{}, r
	}
	if typ != driver.CU_DEV_RESOURCE_TYPE_SM {
		return driver.CUdevResource{}, driver.CUDA_ERROR_INVALID_RESOURCE_TYPE
	}
	return d.resource(partition{ordinal: uint32(v.ordinal), sms: multiprocessors, whole: true}), driver.CUDA_SUCCESS
}

func (d *simulator) CuDevSmResourceSplitByCount(groups []driver.CUdevResource, input *driver.CUdevResource, flags, minCount uint32) (made uint32, left driver.CUdevResource, r driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, left, r
	}
	p, r := d.partitionOf(input)
	if r != driver.CUDA_SUCCESS {
		return 0, left, r
	}
	least, multiple := d.smRules(flags)
	size := (max(minCount, least) + multiple - 1) / multiple * multiple
	switch {
	case minCount > p.sms || flags&^driver.CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING != 0:
		return 0, left, driver.CUDA_ERROR_INVALID_VALUE
	case !p.whole || size > p.sms:
		return 0, left, driver.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
	}
	made = p.sms / size
	if groups != nil {
		made = min(made, uint32(len(groups)))
	}
	split := uint64(size)<<32 | uint64(flags) // NVIDIA's driver, 580, also gives equal groups to equal splits
	for i := range min(made, uint32(len(groups))) {
		groups[i] = d.resource(partition{ordinal: p.ordinal, sms: size, split: split, index: byte(i)})
	}
	if rest := p.sms - made*size; rest > 0 {
		left = d.resource(partition{ordinal: p.ordinal, sms: rest, split: split, index: byte(made)})
	}
	return made, left, driver.CUDA_SUCCESS
}

func (d *simulator) CuDevResourceGenerateDesc(resources []driver.CUdevResource) (driver.CUdevResourceDesc, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if len(resources) == 0 {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	var all partition
	for i := range resources {
		p, r := d.partitionOf(&resources[i])
		if r != driver.CUDA_SUCCESS {
			return 0, r
		}
		if i > 0 && (p.ordinal != all.ordinal || p.split != all.split || p.whole) {
			return 0, driver.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
		}
		all = partition{ordinal: p.ordinal, sms: all.sms + p.sms, split: p.split, whole: p.whole}
	}
	return d.descriptors.add(&greenDescriptor{all}), driver.CUDA_SUCCESS
}

func (d *simulator) CuGreenCtxCreate(desc driver.CUdevResourceDesc, dev driver.CUdevice, flags uint32) (driver.CUgreenCtx, driver.CUresult) {
	v, r := d.device(dev)
	if r == driver.CUDA_SUCCESS {
		r = d.permitted()
	}
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	of := d.descriptors.get(desc)
	if of == nil || int(of.ordinal) != v.ordinal || flags != driver.CU_GREEN_CTX_DEFAULT_STREAM {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	if _, r := d.CuDevicePrimaryCtxRetain(dev); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	v.mu.Lock()
	c := v.primary
	v.mu.Unlock()
	if c == nil { // another thread resets the device now
		d.CuDevicePrimaryCtxRelease(dev)
		return 0, driver.CUDA_ERROR_CONTEXT_IS_DESTROYED
	}
	d.descriptors.take(desc)
	return d.greens.add(&greenContext{ctx: c, sms: of.sms}), driver.CUDA_SUCCESS
}

func (d *simulator) CuGreenCtxDestroy(h driver.CUgreenCtx) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	g := d.greens.take(h)
	if g == nil {
		return driver.CUDA_ERROR_INVALID_CONTEXT
	}
	g.destroyed.Store(true)
	return d.CuDevicePrimaryCtxRelease(driver.CUdevice(g.ctx.dev.ordinal))
}

// forgetGreens gives up what the green contexts of a context hold of it, because
// a reset has destroyed them.
func (d *simulator) forgetGreens(c *context) {
	lost := d.greens.removeIf(func(g *greenContext) bool { return g.ctx == c })
	for _, g := range lost {
		g.destroyed.Store(true)
	}
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	c.dev.holders -= len(lost)
}

func (d *simulator) CuGreenCtxGetDevResource(h driver.CUgreenCtx, typ driver.CUdevResourceType) (driver.CUdevResource, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return driver.CUdevResource{}, r
	}
	g := d.greens.get(h)
	switch {
	case g == nil:
		return driver.CUdevResource{}, driver.CUDA_ERROR_INVALID_CONTEXT
	case typ != driver.CU_DEV_RESOURCE_TYPE_SM:
		return driver.CUdevResource{}, driver.CUDA_ERROR_INVALID_RESOURCE_TYPE
	}
	return d.resource(partition{ordinal: uint32(g.ctx.dev.ordinal), sms: g.sms, whole: true}), driver.CUDA_SUCCESS
}

func (d *simulator) CuGreenCtxStreamCreate(h driver.CUgreenCtx, flags uint32, priority int32) (driver.CUstream, driver.CUresult) {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	g := d.greens.get(h)
	if g == nil {
		return 0, driver.CUDA_ERROR_INVALID_CONTEXT
	}
	if flags != driver.CU_STREAM_NON_BLOCKING {
		return 0, driver.CUDA_ERROR_INVALID_VALUE
	}
	if r := g.ctx.result(); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	d.behindLaunches()
	s := newStream(g.ctx, flags, priority)
	s.green = g
	s.handle = d.streams.add(s)
	return s.handle, driver.CUDA_SUCCESS
}
