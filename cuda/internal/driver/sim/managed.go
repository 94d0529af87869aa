// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"sync"

	"github.com/cudago/cudago/cuda/internal/driver"
)

// Managed memory has one copy here, which all processors access in place. So
// advice moves nothing: it is stored for each page, and reported. Behaviour
// that cuda.h does not specify was observed on an H200, driver 580.159, CUDA
// 13.0.

// pageAdvice is the advice for a page.
type pageAdvice struct {
	readMostly            bool
	preferred, prefetched driver.CUmemLocation // of type INVALID if there is none
	accessedBy            uint32               // a bit for each device, and byHost
}

const byHost = 1 << 31

// advisedRun is a run of pages with equal advice.
type advisedRun struct {
	first uint64 // page of the allocation
	pageAdvice
}

// advised is the advice about an allocation.
type advised struct {
	mu   sync.Mutex
	runs []advisedRun // guarded by mu; by first, the first of which is 0; each goes up to the next
}

func newAdvised(preferred driver.CUmemLocation) *advised {
	return &advised{runs: []advisedRun{{pageAdvice: pageAdvice{preferred: preferred}}}}
}

// change changes the advice about the pages [first, end).
func (v *advised) change(first, end uint64, change func(p *pageAdvice)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	from, to := v.split(first), v.split(end)
	for i := from; i < to; i++ {
		change(&v.runs[i].pageAdvice)
	}
	v.runs = slices.CompactFunc(v.runs, func(a, b advisedRun) bool { return a.pageAdvice == b.pageAdvice })
}

// split makes a run begin at a page, and returns its index. The pages before the
// page stay at their indexes.
//
// Preconditions: v.mu must be locked.
func (v *advised) split(page uint64) int {
	i, found := slices.BinarySearchFunc(v.runs, page, func(r advisedRun, page uint64) int { return int(int64(r.first - page)) })
	if !found {
		v.runs = slices.Insert(v.runs, i, advisedRun{page, v.runs[i-1].pageAdvice})
	}
	return i
}

// common is the advice that all pages of [first, end) share. Advice on which
// they differ counts as absent.
func (v *advised) common(first, end uint64) pageAdvice {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, found := slices.BinarySearchFunc(v.runs, first, func(r advisedRun, page uint64) int { return int(int64(r.first - page)) })
	if !found {
		i--
	}
	all := v.runs[i].pageAdvice
	for _, r := range v.runs[i+1:] {
		if r.first >= end {
			break
		}
		all.readMostly = all.readMostly && r.readMostly
		all.accessedBy &= r.accessedBy
		if r.preferred != all.preferred {
			all.preferred = driver.CUmemLocation{}
		}
		if r.prefetched != all.prefetched {
			all.prefetched = driver.CUmemLocation{}
		}
	}
	return all
}

// managedRange finds the allocation of managed memory that contains a range, and
// its pages.
func (d *simulator) managedRange(p driver.CUdeviceptr, size uint64) (v *advised, first, end uint64) {
	a := d.space.find(uint64(p))
	if a == nil || a.kind != memManaged || a.freed.Load() || size == 0 || size > a.size-(uint64(p)-a.base) {
		return nil, 0, 0
	}
	offset := uint64(p) - a.base
	return a.advised, offset / hostPage, (offset + size + hostPage - 1) / hostPage
}

// place checks a location and returns it in its canonical form. The host has
// one NUMA node.
func (d *simulator) place(l driver.CUmemLocation) (driver.CUmemLocation, driver.CUresult) {
	const hostNumaCurrent = 4 // CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, cuda.h, CUDA 12.4
	switch l.Type {
	case driver.CU_MEM_LOCATION_TYPE_DEVICE:
		_, r := d.device(driver.CUdevice(l.ID))
		return l, r
	case driver.CU_MEM_LOCATION_TYPE_HOST:
		return driver.CUmemLocation{Type: l.Type, ID: driver.CU_DEVICE_CPU}, driver.CUDA_SUCCESS
	case hostNumaCurrent:
		return driver.CUmemLocation{Type: driver.CU_MEM_LOCATION_TYPE_HOST_NUMA}, driver.CUDA_SUCCESS
	case driver.CU_MEM_LOCATION_TYPE_HOST_NUMA:
		if l.ID == 0 {
			return l, driver.CUDA_SUCCESS
		}
	}
	return l, driver.CUDA_ERROR_INVALID_VALUE
}

// CuMemAdvise stores advice. The type of the location must be valid even if the
// location is ignored, and a device that does not exist is an invalid value.
func (d *simulator) CuMemAdvise(p driver.CUdeviceptr, size uint64, advice driver.CUmem_advise, location driver.CUmemLocation) driver.CUresult {
	if _, r := d.current(); r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	v, first, end := d.managedRange(p, size)
	ignored := advice == driver.CU_MEM_ADVISE_SET_READ_MOSTLY || advice == driver.CU_MEM_ADVISE_UNSET_READ_MOSTLY ||
		advice == driver.CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION
	at, r := d.place(location)
	if v == nil || at.Type == driver.CU_MEM_LOCATION_TYPE_INVALID || r != driver.CUDA_SUCCESS && !ignored {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	change := adviceChange(advice, at)
	if change == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	v.change(first, end, change)
	return driver.CUDA_SUCCESS
}

// adviceChange is what advice does to a page; nil if there is no such advice.
func adviceChange(advice driver.CUmem_advise, at driver.CUmemLocation) func(*pageAdvice) {
	switch advice {
	case driver.CU_MEM_ADVISE_SET_READ_MOSTLY:
		return func(p *pageAdvice) { p.readMostly = true }
	case driver.CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		return func(p *pageAdvice) { p.readMostly = false }
	case driver.CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		return func(p *pageAdvice) { p.preferred = at }
	case driver.CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		return func(p *pageAdvice) { p.preferred = driver.CUmemLocation{} }
	}
	var by uint32
	switch at.Type {
	case driver.CU_MEM_LOCATION_TYPE_DEVICE:
		by = 1 << at.ID
	case driver.CU_MEM_LOCATION_TYPE_HOST:
		by = byHost
	default: // a NUMA node accesses nothing
		return nil
	}
	switch advice {
	case driver.CU_MEM_ADVISE_SET_ACCESSED_BY:
		return func(p *pageAdvice) { p.accessedBy |= by }
	case driver.CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		return func(p *pageAdvice) { p.accessedBy &^= by }
	}
	return nil
}

// CuMemPrefetchAsync moves nothing. The last prefetch location changes at the
// call, not when the stream reaches it, as cuda.h says.
func (d *simulator) CuMemPrefetchAsync(p driver.CUdeviceptr, size uint64, location driver.CUmemLocation, flags uint32, h driver.CUstream) driver.CUresult {
	s, r := d.stream(h)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	v, first, end := d.managedRange(p, size)
	if v == nil || flags != 0 {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	to, r := d.place(location)
	if r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.refuseCapturing(s); r != driver.CUDA_SUCCESS {
		return r
	}
	v.change(first, end, func(p *pageAdvice) { p.prefetched = to })
	s.enqueueQuick(joinWork{})
	return driver.CUDA_SUCCESS
}

func (d *simulator) CuMemRangeGetAttribute(data []int32, attribute driver.CUmem_range_attribute, p driver.CUdeviceptr, size uint64) driver.CUresult {
	if _, r := d.current(); r != driver.CUDA_SUCCESS {
		return r
	}
	v, first, end := d.managedRange(p, size)
	if v == nil || len(data) == 0 || len(data) > 1 && attribute != driver.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	all := v.common(first, end)
	switch attribute {
	case driver.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		data[0] = toInt(all.readMostly)
	case driver.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
		all.listAccessedBy(data)
	case driver.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, driver.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		data[0] = deviceNumber(all.preferred, attribute == driver.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION)
	case driver.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, driver.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		data[0] = deviceNumber(all.prefetched, attribute == driver.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION)
	case driver.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		data[0] = int32(all.preferred.Type)
	case driver.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		data[0] = int32(all.prefetched.Type)
	default:
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	return driver.CUDA_SUCCESS
}

// listAccessedBy lists the devices and then the host, as far as there is room.
func (p *pageAdvice) listAccessedBy(data []int32) {
	n := 0
	for i := range int32(32) {
		if p.accessedBy&(1<<i) == 0 || n == len(data) {
			continue
		}
		if data[n] = i; 1<<i == byHost {
			data[n] = driver.CU_DEVICE_CPU
		}
		n++
	}
	for ; n < len(data); n++ {
		data[n] = driver.CU_DEVICE_INVALID
	}
}

// deviceNumber is a location as a number. hostToo is for attributes without a
// type: there the host has a number of its own.
func deviceNumber(l driver.CUmemLocation, hostToo bool) int32 {
	switch {
	case l.Type == driver.CU_MEM_LOCATION_TYPE_INVALID:
		return driver.CU_DEVICE_INVALID
	case hostToo && l.Type != driver.CU_MEM_LOCATION_TYPE_DEVICE:
		return driver.CU_DEVICE_CPU
	}
	return l.ID
}
