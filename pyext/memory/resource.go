// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

package memory

/*
#include "memory.h"
*/
import "C"

import (
	"github.com/cudago/cudago/cuda"
	"github.com/cudago/cudago/pyext/border"
)

// resource is the memory resource behind a Python MemoryResource.
type resource struct {
	cuda.MemoryResource
	pool *cuda.DeviceMemoryResource // nil if it is not a pool
}

// Resources are the open memory resources.
var Resources = border.NewTable[resource]("memory resource")

// OwnResources counts the resources except those over a device's default pool,
// which are as permanent as the device.
func OwnResources() int {
	return Resources.Count(func(r resource) bool { return r.pool == nil || !r.pool.IsDefault() })
}

// cudagoResourceRelease leaves the resource to the reaper: destroying a pool may
// wait.
//
//export cudagoResourceRelease
func cudagoResourceRelease(id C.uint64_t) {
	if r, ok := Resources.Take(uint64(id)); ok {
		border.Reaper.Add(border.Once(r.Close))
	}
}

//export cudagoResourceTrim
func cudagoResourceTrim(id, keep C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		p, err := poolOf(id)
		if err != nil {
			return err
		}
		return p.Trim(uint64(keep))
	})
}

func poolOf(id C.uint64_t) (*cuda.DeviceMemoryResource, error) { return PoolOf(uint64(id)) }

// PoolOf returns the pool behind a memory resource.
func PoolOf(id uint64) (*cuda.DeviceMemoryResource, error) {
	r, err := Resources.Get(id)
	if err != nil {
		return nil, err
	}
	if _, imported := r.MemoryResource.(*cuda.ImportedMemoryResource); imported {
		return nil, &cuda.ArgumentError{Kind: cuda.WrongType, Arg: "memory resource", Text: "is a pool of another process, which alone can ask and change it"}
	}
	if r.pool == nil {
		return nil, &cuda.ArgumentError{Kind: cuda.WrongType, Arg: "memory resource", Text: "has no pool"}
	}
	return r.pool, nil
}

// cudagoAllocateBeside allocates from a pool without a node, also while a stream
// of its device is capturing.
//
//export cudagoAllocateBeside
func cudagoAllocateBeside(id, size C.uint64_t, st *C.cudago_status) (ptr C.uint64_t) {
	guard(st, func() error {
		p, err := PoolOf(uint64(id))
		if err != nil {
			return err
		}
		at, err := p.AllocateBeside(uint64(size))
		ptr = C.uint64_t(at)
		return err
	})
	return ptr
}

//export cudagoResourceStat
func cudagoResourceStat(id C.uint64_t, what C.int, st *C.cudago_status) (v C.uint64_t) {
	guard(st, func() error {
		p, err := poolOf(id)
		if err != nil {
			return err
		}
		switch {
		case what == statThreshold:
			t, err := p.ReleaseThreshold()
			v = C.uint64_t(t)
			return err
		case what > statThreshold:
			on, err := p.Setting(cuda.PoolSetting(what - statThreshold))
			if on {
				v = 1
			}
			return err
		}
		s, err := p.Statistics()
		if err != nil {
			return err
		}
		v = C.uint64_t([]uint64{s.Used, s.UsedHigh, s.Reserved, s.ReservedHigh}[what])
		return nil
	})
	return v
}

// statThreshold is the number that _resource.py gives the release threshold. The
// statistics come before it, the settings behind it in the order of cuda.h, and
// then the reset of the maxima.
const (
	statThreshold = 4
	statReset     = 8
)

//export cudagoResourceSet
func cudagoResourceSet(id C.uint64_t, what C.int, v C.uint64_t, st *C.cudago_status) {
	guard(st, func() error {
		p, err := poolOf(id)
		switch {
		case err != nil:
			return err
		case what == statThreshold:
			return p.SetReleaseThreshold(uint64(v))
		case what == statReset:
			return p.ResetHigh()
		}
		return p.Set(cuda.PoolSetting(what-statThreshold), v != 0)
	})
}

// cudagoTrimPools returns the unused memory of all pools to their devices: what
// one pool keeps, another cannot have. A pool that fails to trim has none to give.
// And it has pools go that are kept for resources to come.
//
//export cudagoTrimPools
func cudagoTrimPools() {
	for _, id := range Resources.IDs() {
		if r, err := Resources.Get(id); err == nil && r.pool != nil {
			_ = border.Contained(func() error { return r.pool.Trim(0) })
		}
	}
	border.Driver.Load().ReleaseUnused()
}

//export cudagoAllocError
func cudagoAllocError(mr, size C.uint64_t, code C.int32_t, st *C.cudago_status) {
	guard(st, func() error {
		p, err := poolOf(mr)
		if err != nil {
			return err
		}
		return p.Failure(int32(code), uint64(size))
	})
}
