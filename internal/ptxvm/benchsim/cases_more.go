// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
)

// restoring wraps a run that changes its input: the input is uploaded again
// before each, outside of the measured time.
func (s *session) restoring(addr uint64, values any, run func() error) func() error {
	raw, err := encode(values)
	return func() error {
		if err != nil {
			return err
		}
		if err := s.device.Memory().Write(addr, raw); err != nil {
			return err
		}
		return run()
	}
}

func prepareHistogram(s *session, n int) (run, check func() error, err error) {
	data, bins, want := make([]uint8, n), make([]uint32, 256), make([]uint32, 256)
	r := source(n)
	for i := range data {
		data[i] = uint8(r.Uint32() & r.Uint32())
		want[data[i]]++
	}
	p, err := s.uploads(data, bins)
	return s.restoring(p[1], bins, func() error {
		return s.launch("histogram", x(64), x(256), 0, p[0], p[1], n)
	}), checkOf(s, p[1], want), err
}

// prepareSoftmax compares with f64 within 2e-6 relative, which covers expf's 2
// ulp, the sum's rounding and the division.
func prepareSoftmax(s *session, rows int) (run, check func() error, err error) {
	return s.softmax(rows, 2e-6)
}

// prepareFastSoftmax allows for __expf, which rounds x*log2(e) to f32: with |x|
// up to 20 that alone is 2e-6.
func prepareFastSoftmax(s *session, rows int) (run, check func() error, err error) {
	return s.softmax(rows, 6e-6)
}

func (s *session) softmax(rows int, bound float64) (run, check func() error, err error) {
	const n = 700
	v := uniform(rows * n)
	for i := range v {
		v[i] *= 10
	}
	p, err := s.uploads(v, make([]float32, rows*n))
	check = func() error {
		got := make([]float32, rows*n)
		if err := s.download(p[1], got); err != nil {
			return err
		}
		for r := range rows {
			if err := checkRow(got[r*n:][:n], v[r*n:][:n], bound); err != nil {
				return fmt.Errorf("row %d: %w", r, err)
			}
		}
		return nil
	}
	return func() error { return s.launch("softmax", x(rows), x(256), 0, p[0], p[1], n) }, check, err
}

func checkRow(got, in []float32, bound float64) error {
	var sum float64
	for _, v := range in {
		sum += math.Exp(float64(v))
	}
	for i, v := range in {
		want := math.Exp(float64(v)) / sum
		if e := math.Abs(float64(got[i])-want) / want; !(e < bound) {
			return fmt.Errorf("element %d is %v, want %v (relative error %.2g)", i, got[i], want, e)
		}
	}
	return nil
}

func prepareCollatz(s *session, n int) (run, check func() error, err error) {
	return s.collatz(n, 256)
}

// prepareOneLane has blocks of one thread: the worst case, 1 lane of 32.
func prepareOneLane(s *session, n int) (run, check func() error, err error) {
	return s.collatz(n, 1)
}

func (s *session) collatz(n, block int) (run, check func() error, err error) {
	want := make([]uint32, n)
	p, err := s.uploads(want)
	for i := range want {
		for v := uint64(i + 1); v != 1; want[i]++ {
			if v&1 != 0 {
				v = 3*v + 1
			} else {
				v /= 2
			}
		}
	}
	return func() error { return s.launch("collatz", x(blocks(n, block)), x(block), 0, p[0], n) }, checkOf(s, p[0], want), err
}

func prepareBlur(s *session, n int) (run, check func() error, err error) {
	w, h := n, n*2/3
	in, want := uniform(w*h), make([]float32, w*h)
	p, err := s.uploads(in, want)
	clamp := func(v, most int) int { return min(max(v, 0), most) }
	for y := range h {
		for x := range w {
			var sum float32
			for j := -2; j <= 2; j++ {
				for i := -2; i <= 2; i++ {
					sum += in[clamp(y+j, h-1)*w+clamp(x+i, w-1)]
				}
			}
			want[y*w+x] = sum / 25
		}
	}
	return func() error {
		return s.launch("blur", xy(blocks(w, 16), blocks(h, 16)), xy(16, 16), 0, p[0], p[1], w, h)
	}, checkOf(s, p[1], want), err
}

func prepareTranspose(s *session, n int) (run, check func() error, err error) {
	w, h := n, n*2/3
	in, want := uniform(w*h), make([]float32, w*h)
	p, err := s.uploads(in, want)
	for y := range h {
		for x := range w {
			want[x*h+y] = in[y*w+x]
		}
	}
	return func() error {
		return s.launch("transpose", xy(blocks(w, 32), blocks(h, 32)), xy(32, 8), 0, p[0], p[1], w, h)
	}, checkOf(s, p[1], want), err
}

func preparePrefixSum(s *session, n int) (run, check func() error, err error) {
	in, want := make([]int32, n), make([]int32, n)
	r := source(n)
	var sum int32
	for i := range in {
		in[i] = int32(r.IntN(1000)) - 500
		sum += in[i]
		want[i] = sum
	}
	grid := blocks(n, 256)
	p, err := s.uploads(in, want, make([]int32, grid))
	run = func() error {
		if err := s.launch("prefix_sum", x(grid), x(256), 0, p[0], p[1], p[2], n); err != nil {
			return err
		}
		return s.launch("add_offsets", x(grid), x(256), 0, p[1], p[2], n)
	}
	return run, checkOf(s, p[1], want), err
}
