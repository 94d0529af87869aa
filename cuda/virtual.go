// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// VirtualOptions says how a [VirtualMemoryResource] allocates.
type VirtualOptions struct {
	// Reserve is how many bytes of address space each buffer gets, whatever its
	// size: up to there growing cannot fail for lack of addresses. It costs no
	// memory. Zero means the size of the device's memory, and at least four
	// times the buffer's size.
	Reserve uint64
	// Peers are the other devices that may access the memory.
	Peers []*Device
	// Shareable says that other processes may import the memory: see
	// [Buffer.ExportVirtual].
	Shareable bool
}

// A VirtualMemoryResource allocates device memory that can grow in place: see
// [Buffer.Grow]. It owns nothing itself.
//
// Allocating, growing and releasing are not stream-ordered and may make the
// host wait for the device. Sizes are rounded up to the granularity of the
// device's pages, 2 MiB in most cases.
type VirtualMemoryResource struct {
	ctx         *Context
	prop        driver.CUmemAllocationProp
	access      []driver.CUmemAccessDesc // of the device, and of peers
	granularity uint64
	reserve     uint64 // asked for; zero: as much as total
	total       uint64 // the device's memory
	closed      atomic.Bool
}

// NewVirtualMemoryResource returns a resource that allocates memory of d.
//
// Errors: [ErrorNotSupported] if d has no virtual memory management, or shares no
// such memory and o.Shareable is set; an [*ArgumentError] if a peer is d; [ErrorPeerAccessUnsupported] if a peer cannot
// access d's memory.
func NewVirtualMemoryResource(d *Device, o VirtualOptions) (*VirtualMemoryResource, error) {
	const op = "cuMemGetAllocationGranularity"
	if err := d.need(VirtualAddressManagementSupported, op, "has no virtual memory management"); err != nil {
		return nil, err
	}
	c, err := d.Context()
	if err != nil {
		return nil, err
	}
	mr := &VirtualMemoryResource{ctx: c, reserve: o.Reserve}
	for _, peer := range append([]*Device{d}, o.Peers...) {
		if len(mr.access) > 0 {
			if err := peer.needPeer("cuMemSetAccess", d); err != nil {
				return nil, err
			}
		}
		mr.access = append(mr.access, driver.CUmemAccessDesc{Location: peer.location(), Flags: driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE})
	}
	if mr.total, err = d.TotalMemory(); err != nil {
		return nil, err
	}
	mr.prop.Type = driver.CU_MEM_ALLOCATION_TYPE_PINNED
	mr.prop.Location = d.location()
	if o.Shareable {
		if err := mr.share(); err != nil {
			return nil, err
		}
	}
	mr.granularity, err = call1(c, op, func(api driver.API) (uint64, driver.CUresult) {
		return api.CuMemGetAllocationGranularity(&mr.prop, driver.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
	})
	if err != nil {
		return nil, err
	}
	return mr, nil
}

// Kind returns [DeviceMemory].
func (mr *VirtualMemoryResource) Kind() MemoryKind { return DeviceMemory }

// Device returns the device whose memory it is.
func (mr *VirtualMemoryResource) Device() *Device { return mr.ctx.dev }

// Granularity returns what sizes are rounded up to, in bytes.
func (mr *VirtualMemoryResource) Granularity() uint64 { return mr.granularity }

// IsClosed reports whether Close was called.
func (mr *VirtualMemoryResource) IsClosed() bool { return mr.closed.Load() }

// Close is documented at [MemoryResource].
func (mr *VirtualMemoryResource) Close() error {
	mr.closed.Store(true)
	return nil
}

// Allocate is documented at [MemoryResource], but that the memory can be used
// in every stream at once, and that the call may block. It calls
// cuMemAddressReserve, cuMemCreate, cuMemMap and cuMemSetAccess.
//
// The last holder's release waits for s and unmaps the memory; work in other
// streams must have completed.
func (mr *VirtualMemoryResource) Allocate(size uint64, s *Stream) (*Buffer, error) {
	if s == nil {
		return nil, badType("stream", "is required: virtual memory is released when a stream has completed")
	}
	if s.ctx != mr.ctx {
		return nil, badValue("stream", "must be of %v, as the memory is, got one of %v", mr.ctx.dev, s.ctx.dev)
	}
	if mr.closed.Load() {
		return nil, &ClosedError{"memory resource"}
	}
	if size == 0 {
		return emptyBuffer(mr.ctx, mr, s)
	}
	c := mr.ctx
	c.Drain()
	v := &virtualMemory{mr: mr}
	a := &allocation{ctx: c, kind: DeviceMemory, virtual: v, resource: mr, free: freeVirtual}
	if err := a.useStream(s); err != nil {
		return nil, err
	}
	if err := v.resize(size); err != nil {
		unuse(s)
		return nil, err
	}
	a.base = uint64(v.reserved[0].base)
	c.drv.live.allocations.Add(1)
	b := newBuffer(a)
	b.whole = true
	return b, nil
}

// freeVirtual releases everything once s has completed: unmapping does not wait
// for the work that uses the memory.
func freeVirtual(a *allocation, s *Stream) {
	on := s.OnAnyThread()
	a.ctx.disposeSteps(a.what(), nil, &a.ctx.drv.live.allocations, func(api driver.API) (string, driver.CUresult) {
		if r := a.unused(on); r != driver.CUDA_SUCCESS {
			return "cuStreamQuery", r
		}
		a.virtual.mu.Lock()
		defer a.virtual.mu.Unlock()
		return a.virtual.cut(api, 0, 0)
	}, func() {
		a.virtual.closeFiles() // of what the driver has released itself, or could not
		unuse(s)
	})
}

// Grow makes b larger in place: its address and content do not change, and
// pointers, slices and graphs that use them stay valid. The content of the new
// bytes is undefined; they can be used in every stream at once. Work in flight
// is not disturbed. It calls cuMemCreate, cuMemMap and cuMemSetAccess, and, if
// the reserved addresses do not suffice, cuMemAddressReserve for those after
// them.
//
// Only a Buffer that a [VirtualMemoryResource] allocated can grow; its slices
// cannot, nor can what is imported. Who has imported it keeps what it had. Growing to the size that b has does nothing.
//
// Errors: an [*ArgumentError] if b cannot grow or size is less than b has;
// [ErrClosed]; [ErrorOutOfMemory] if there is not enough memory, or if the
// addresses behind b are taken. After an error b is as it was.
func (b *Buffer) Grow(size uint64) error {
	if err := b.begin(); err != nil {
		return err
	}
	defer b.a.release()
	switch {
	case b.a.virtual == nil:
		return badType("", "%v cannot grow: it was not allocated by a virtual memory resource", b)
	case b.a.virtual.mr == nil:
		return badType("", "%v cannot grow: it is imported, and only the process that allocated it can make it larger, for itself", b)
	}
	if !b.whole {
		return badType("", "%v cannot grow: it is a slice of another one", b)
	}
	return b.a.virtual.resize(size)
}

// virtualMemory is the memory of a Buffer that can grow, or that was imported from
// a process where it can.
type virtualMemory struct {
	mr   *VirtualMemoryResource // nil if it was imported
	size atomic.Uint64          // of the Buffer; it changes with mu locked

	// mu serializes growing. It is locked during driver calls, which may wait
	// for the device but never for a thread that waits for mu.
	mu       sync.Mutex
	reserved []reservedRange // guarded by mu; adjacent
	pieces   []mappedPiece   // guarded by mu; adjacent, from the start of reserved
	// kept is guarded by mu: how many of both belong to the Buffer. The rest is
	// what a failed growth could not undo.
	kept struct{ reserved, pieces int }
}

type reservedRange struct {
	base driver.CUdeviceptr
	size uint64
}

func (r reservedRange) end() driver.CUdeviceptr { return r.base + driver.CUdeviceptr(r.size) }

// mappedPiece is one physical allocation. The driver maps each as a whole.
type mappedPiece struct {
	base   driver.CUdeviceptr
	size   uint64
	handle driver.CUmemGenericAllocationHandle
	mapped bool
	file   *os.File // what other processes import; nil if they cannot
}

// resize makes the memory larger, or leaves it as it was.
func (v *virtualMemory) resize(size uint64) error {
	c := v.mr.ctx
	leave, err := c.enterRelaxed()
	if err != nil {
		return err
	}
	defer leave()
	v.mu.Lock()
	defer v.mu.Unlock()
	if have := v.size.Load(); size < have {
		return badValue("size", "must be at least %d bytes, what the buffer has: it can only grow; got %d", have, size)
	}
	if size > maxVirtualSize {
		return c.failAlloc("cuMemCreate", driver.CUDA_ERROR_OUT_OF_MEMORY, size)
	}
	if err := v.undo(); err != nil {
		return err
	}
	if err := v.extend(size); err != nil {
		if second := v.undo(); second != nil {
			return errors.Join(err, second)
		}
		return err
	}
	v.kept.reserved, v.kept.pieces = len(v.reserved), len(v.pieces)
	v.size.Store(size)
	return nil
}

// maxVirtualSize keeps sums of sizes from overflowing. No device has that much.
const maxVirtualSize = 1 << 56

// undo releases what a failed growth left behind.
//
// Preconditions: v.mu must be locked, and the context current.
func (v *virtualMemory) undo() error {
	op, r := v.cut(v.mr.ctx.drv.api, v.kept.reserved, v.kept.pieces)
	return v.mr.ctx.check(op, r)
}

// cut releases all but the first reservations and pieces, the latest first.
//
// Preconditions: v.mu must be locked, and the context current.
func (v *virtualMemory) cut(api driver.API, reserved, pieces int) (op string, r driver.CUresult) {
	for len(v.pieces) > pieces {
		p := &v.pieces[len(v.pieces)-1]
		if p.mapped {
			if r := api.CuMemUnmap(p.base, p.size); r != driver.CUDA_SUCCESS {
				return "cuMemUnmap", r
			}
			p.mapped = false
		}
		p.closeFile()
		if r := api.CuMemRelease(p.handle); r != driver.CUDA_SUCCESS {
			return "cuMemRelease", r
		}
		v.pieces = v.pieces[:len(v.pieces)-1]
	}
	for len(v.reserved) > reserved {
		last := v.reserved[len(v.reserved)-1]
		if r := api.CuMemAddressFree(last.base, last.size); r != driver.CUDA_SUCCESS {
			return "cuMemAddressFree", r
		}
		v.reserved = v.reserved[:len(v.reserved)-1]
	}
	return "", driver.CUDA_SUCCESS
}

// extend maps more memory until there are size bytes. If it fails, the caller
// must undo what it did.
//
// Preconditions: v.mu must be locked, and the context current.
func (v *virtualMemory) extend(size uint64) error {
	var have uint64
	for _, p := range v.pieces {
		have += p.size
	}
	need := v.mr.roundUp(size)
	if err := v.reserveFor(size, need); err != nil {
		return err
	}
	// A mapping lies in one reservation.
	var before uint64
	for _, r := range v.reserved {
		end := min(need, before+r.size)
		if have < end {
			if err := v.mapPiece(r.base+driver.CUdeviceptr(have-before), end-have); err != nil {
				return err
			}
			have = end
		}
		before += r.size
	}
	return nil
}

func (mr *VirtualMemoryResource) roundUp(size uint64) uint64 {
	return (size + mr.granularity - 1) / mr.granularity * mr.granularity
}

// reserveFor ensures that need bytes of addresses are reserved, for a Buffer of
// size bytes.
func (v *virtualMemory) reserveFor(size, need uint64) error {
	if len(v.reserved) == 0 {
		return v.reserveFirst(need)
	}
	var have uint64
	for _, r := range v.reserved {
		have += r.size
	}
	if need <= have {
		return nil
	}
	behind := v.reserved[len(v.reserved)-1].end()
	if err := v.reserveAt(v.mr.ctx, behind, need-have); err != nil {
		return err
	}
	if v.reserved[len(v.reserved)-1].base == behind {
		return nil
	}
	return &Error{
		Op: "cuMemAddressReserve", Result: ErrorOutOfMemory, Requested: size,
		Detail: fmt.Sprintf("a buffer of %d bytes on %v cannot grow to %d bytes where it is: %d bytes of addresses are reserved for it, "+
			"and those behind them are taken; reserve more when allocating", v.size.Load(), v.mr.ctx.dev, size, have),
	}
}

// reserveFirst reserves for a new Buffer: as much as was requested, or less if
// that was our default and there is not enough.
func (v *virtualMemory) reserveFirst(need uint64) error {
	if v.mr.reserve != 0 {
		return v.reserveAt(v.mr.ctx, 0, max(need, v.mr.roundUp(min(v.mr.reserve, maxVirtualSize))))
	}
	generous := max(4*need, v.mr.roundUp(v.mr.total))
	err := v.reserveAt(v.mr.ctx, 0, generous)
	if errors.Is(err, ErrorOutOfMemory) && generous > need {
		return v.reserveAt(v.mr.ctx, 0, need)
	}
	return err
}

// reserveAt reserves addresses, at the hint if they are free and it is not zero.
//
// Preconditions: v.mu must be locked, and the context current.
func (v *virtualMemory) reserveAt(c *Context, hint driver.CUdeviceptr, size uint64) error {
	base, r := c.drv.api.CuMemAddressReserve(size, 0, hint, 0)
	if r != driver.CUDA_SUCCESS {
		return c.fail("cuMemAddressReserve", r, fmt.Sprintf("%d bytes of addresses", size))
	}
	v.reserved = append(v.reserved, reservedRange{base, size})
	return nil
}

// mapPiece maps size bytes of fresh memory at base, for use by the device.
func (v *virtualMemory) mapPiece(base driver.CUdeviceptr, size uint64) error {
	c := v.mr.ctx
	h, r := c.drv.api.CuMemCreate(size, &v.mr.prop, 0)
	if r != driver.CUDA_SUCCESS {
		return c.failAlloc("cuMemCreate", r, size)
	}
	p := v.add(base, size, h)
	if v.mr.IsShareable() {
		if err := p.export(c); err != nil {
			return err
		}
	}
	return p.show(c, v.mr.access)
}

// add adds a piece behind the others, which is yet to be mapped.
//
// Preconditions: v.mu must be locked.
func (v *virtualMemory) add(base driver.CUdeviceptr, size uint64, h driver.CUmemGenericAllocationHandle) *mappedPiece {
	v.pieces = append(v.pieces, mappedPiece{base: base, size: size, handle: h})
	return &v.pieces[len(v.pieces)-1]
}

// show maps the piece, for use by devices.
//
// Preconditions: the context is current.
func (p *mappedPiece) show(c *Context, access []driver.CUmemAccessDesc) error {
	if r := c.drv.api.CuMemMap(p.base, p.size, 0, p.handle, 0); r != driver.CUDA_SUCCESS {
		return c.fail("cuMemMap", r, fmt.Sprintf("%d bytes at %#x", p.size, uint64(p.base)))
	}
	p.mapped = true
	if r := c.drv.api.CuMemSetAccess(p.base, p.size, access); r != driver.CUDA_SUCCESS {
		return c.fail("cuMemSetAccess", r, fmt.Sprintf("%d bytes at %#x", p.size, uint64(p.base)))
	}
	return nil
}
