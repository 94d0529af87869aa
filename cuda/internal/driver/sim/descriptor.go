// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/cudago/cudago/cuda/internal/driver"

// maker is the current context, for a call that makes an array, a texture or a
// surface: one that waits for launches, and that captures of other threads forbid.
func (d *simulator) maker() (*context, driver.CUresult) {
	c, r := d.current()
	if r != driver.CUDA_SUCCESS {
		return nil, r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return nil, r
	}
	d.behindLaunches()
	return c, driver.CUDA_SUCCESS
}

// describe makes a texture or a surface: some device memory with the descriptor
// that encode returns. The memory's address is the handle: kernels read it there.
func describe[H ~uint64](d *simulator, t *table[H, allocation], encode func() ([]byte, driver.CUresult)) (H, driver.CUresult) {
	c, r := d.maker()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	b, r := encode()
	if r != driver.CUDA_SUCCESS {
		return 0, r
	}
	m := &allocation{kind: memDevice}
	if r := d.allocate(c, uint64(len(b)), m); r != driver.CUDA_SUCCESS {
		return 0, r
	}
	if c.dev.memory.Write(m.base, b) != nil { // a reset has taken it
		return 0, c.result()
	}
	t.put(H(m.base), m)
	return H(m.base), driver.CUDA_SUCCESS
}

// undescribe undoes describe.
func undescribe[H ~uint64](d *simulator, t *table[H, allocation], h H, call string) driver.CUresult {
	if r := d.permitted(); r != driver.CUDA_SUCCESS {
		return r
	}
	if r := d.unsafeCall(); r != driver.CUDA_SUCCESS {
		return r
	}
	m := t.take(h)
	if m == nil {
		return driver.CUDA_ERROR_INVALID_VALUE
	}
	d.release(m, call)
	return m.ctx.result()
}
