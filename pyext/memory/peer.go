// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"errors"
	"fmt"

	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// twoDevices finds two devices by their ordinals.
func twoDevices(a, b C.int32_t) (x, y *cuda.Device, err error) {
	if x, err = border.Driver.Load().Device(int(a)); err != nil {
		return nil, nil, err
	}
	y, err = border.Driver.Load().Device(int(b))
	return x, y, err
}

// peersOf lists the devices of a mask.
func peersOf(mask uint64) (peers []*cuda.Device, err error) {
	for i := 0; mask > 0; i, mask = i+1, mask>>1 {
		if mask&1 == 0 {
			continue
		}
		peer, err := border.Driver.Load().Device(i)
		if err != nil {
			return nil, err
		}
		peers = append(peers, peer)
	}
	return peers, nil
}

// cudagoReachable reports whether kernels on a device may touch memory of
// another one. For memory of other libraries and of closed resources nobody here
// knows, so the driver is asked of the address, or if that is 0 of the devices.
//
//export cudagoReachable
func cudagoReachable(owner, device C.int32_t, mr, address C.uint64_t, st *C.cudago_status) (can C.int) {
	guard(st, func() error {
		d, o, err := twoDevices(device, owner)
		if err != nil {
			return err
		}
		ok, err := reachable(d, o, uint64(mr), uint64(address))
		can = border.Bool[C.int](ok)
		return err
	})
	return can
}

func reachable(d, owner *cuda.Device, mr, address uint64) (bool, error) {
	r, err := Resources.Get(mr)
	if err == nil {
		switch v := r.MemoryResource.(type) {
		case *cuda.DeviceMemoryResource:
			can, err := v.PeerAccess(d)
			if !errors.Is(err, cuda.ErrClosed) {
				return can, err
			}
		case *cuda.ImportedMemoryResource:
			return d == owner, nil
		}
	}
	can, err := d.CanAccessPeer(owner)
	if err != nil || !can || address == 0 {
		return can, err
	}
	c, err := border.ContextOf(d.Ordinal())
	if err != nil {
		return false, err
	}
	return c.Reaches(address)
}

//export cudagoPeerAccess
func cudagoPeerAccess(device, peer C.int32_t, what C.int, st *C.cudago_status) (can C.int) {
	guard(st, func() error {
		d, p, err := twoDevices(device, peer)
		if err != nil {
			return err
		}
		switch what {
		case 0:
			ok, err := d.CanAccessPeer(p)
			can = border.Bool[C.int](ok)
			return err
		case 1:
			return d.EnablePeerAccess(p)
		case 2:
			return d.DisablePeerAccess(p)
		}
		return fmt.Errorf("BUG: peer access %d", what)
	})
	return can
}

//export cudagoResourcePeers
func cudagoResourcePeers(id C.uint64_t, st *C.cudago_status) (mask C.uint32_t) {
	guard(st, func() error {
		pool, err := poolOf(id)
		if err != nil {
			return err
		}
		for i := range border.Driver.Load().DeviceCount() {
			dev, err := border.Driver.Load().Device(i)
			if err != nil {
				return err
			}
			if can, err := pool.PeerAccess(dev); err != nil {
				return err
			} else if can && dev != pool.Device() {
				mask |= 1 << i
			}
		}
		return nil
	})
	return mask
}

//export cudagoResourceSetPeer
func cudagoResourceSetPeer(id C.uint64_t, peer C.int32_t, allowed C.int, st *C.cudago_status) {
	guard(st, func() error {
		pool, err := poolOf(id)
		if err != nil {
			return err
		}
		dev, err := border.Driver.Load().Device(int(peer))
		if err != nil {
			return err
		}
		return pool.SetPeerAccess(dev, allowed != 0)
	})
}
