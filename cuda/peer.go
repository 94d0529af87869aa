// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"slices"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// CanAccessPeer reports whether kernels on d could access peer's memory. It
// calls cuDeviceCanAccessPeer.
func (d *Device) CanAccessPeer(peer *Device) (bool, error) {
	can, r := d.drv.api.CuDeviceCanAccessPeer(d.h, peer.h)
	return can, check("cuDeviceCanAccessPeer", r)
}

// needPeer fails unless peer is another device whose memory d can access.
func (d *Device) needPeer(op string, peer *Device) error {
	if peer == d {
		return badValue("peer", "must be another device than %v", d)
	}
	can, err := d.CanAccessPeer(peer)
	if err == nil && !can {
		err = &Error{Op: op, Result: ErrorPeerAccessUnsupported, Detail: d.String() + " cannot access memory of " + peer.String()}
	}
	return err
}

// EnablePeerAccess lets kernels on d access memory of cuMemAlloc on peer; for memory
// of a pool see [DeviceMemoryResource.SetPeerAccess]. The simulated driver gives
// access to variables of modules there too, but two H200 with driver 580.159 gave
// none to those of modules that were loaded before. Access is one-way. Enabling it again,
// also after another library, has no effect. It calls cuCtxEnablePeerAccess.
//
// Not stream-ordered. Allowed while streams are capturing, and not captured.
//
// Errors: an [*ArgumentError] if peer is d; [ErrorPeerAccessUnsupported] if d
// cannot access peer's memory.
func (d *Device) EnablePeerAccess(peer *Device) error {
	return d.peerAccess("cuCtxEnablePeerAccess", peer, driver.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
		func(api driver.API, c *Context) driver.CUresult { return api.CuCtxEnablePeerAccess(c.h, 0) })
}

// DisablePeerAccess undoes [Device.EnablePeerAccess], for the whole process. No
// work that uses the access may be pending. Without access, it has no effect.
// It calls cuCtxDisablePeerAccess.
//
// Errors: as for EnablePeerAccess.
func (d *Device) DisablePeerAccess(peer *Device) error {
	return d.peerAccess("cuCtxDisablePeerAccess", peer, driver.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
		func(api driver.API, c *Context) driver.CUresult { return api.CuCtxDisablePeerAccess(c.h) })
}

// peerAccess makes a driver call about a peer. The code already means that there
// was nothing to do.
func (d *Device) peerAccess(op string, peer *Device, already driver.CUresult, call func(driver.API, *Context) driver.CUresult) error {
	if err := d.needPeer(op, peer); err != nil {
		return err
	}
	c, err := d.Context()
	if err != nil {
		return err
	}
	other, err := peer.Context()
	if err != nil {
		return err
	}
	if err := other.hold(); err != nil {
		return err
	}
	defer other.release()
	leave, err := c.enterRelaxed()
	if err != nil {
		return err
	}
	defer leave()
	if r := call(d.drv.api, other); r != driver.CUDA_SUCCESS && r != already {
		return c.fail(op, r, d.String()+", peer "+peer.String())
	}
	return nil
}

func (d *Device) location() driver.CUmemLocation { return Location{d}.raw() }

// SetPeerAccess grants kernels on peer access to all memory of mr, past and
// future, or removes it: then no work that uses the access may be pending. It
// calls cuMemPoolSetAccess.
//
// Not stream-ordered. Allowed while streams are capturing, and not captured.
//
// Errors: [ErrClosed]; an [*ArgumentError] if peer is mr's own device;
// [ErrorPeerAccessUnsupported] if peer cannot access the memory.
func (mr *DeviceMemoryResource) SetPeerAccess(peer *Device, allowed bool) error {
	const op = "cuMemPoolSetAccess"
	if err := peer.needPeer(op, mr.ctx.dev); err != nil {
		return err
	}
	desc := []driver.CUmemAccessDesc{{Location: peer.location()}}
	if allowed {
		desc[0].Flags = driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
	}
	_, err := poolCall(mr, op, func(api driver.API, pool driver.CUmemoryPool) (none, driver.CUresult) {
		return none{}, api.CuMemPoolSetAccess(pool, desc)
	})
	return err
}

// PeerAccess reports whether kernels on peer may access memory of mr. Those on
// mr's own device always may. It calls cuMemPoolGetAccess.
//
// Errors: [ErrClosed].
func (mr *DeviceMemoryResource) PeerAccess(peer *Device) (bool, error) {
	flags, err := poolCall(mr, "cuMemPoolGetAccess", func(api driver.API, pool driver.CUmemoryPool) (driver.CUmemAccess_flags, driver.CUresult) {
		return api.CuMemPoolGetAccess(pool, peer.location())
	})
	return flags == driver.CU_MEM_ACCESS_FLAGS_PROT_READWRITE, err
}

// PeerAccess reports whether kernels on peer may access memory of mr.
func (mr *VirtualMemoryResource) PeerAccess(peer *Device) bool {
	return slices.ContainsFunc(mr.access, func(a driver.CUmemAccessDesc) bool { return a.Location.ID == int32(peer.ordinal) })
}
