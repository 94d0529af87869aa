// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// benchCase is a kernel with inputs and a reference. prepare uploads inputs and
// returns what runs the kernel once and what checks the result of the runs.
type benchCase struct {
	name     string
	file     string // of the PTX, without suffix
	full     int    // size for measurements
	small    int    // size for tests
	weighted bool   // counts in the time-weighted total
	prepare  func(s *session, n int) (run, check func() error, err error)
}

var cases = []*benchCase{
	{"vector_add", "vector_add", 2 << 20, 5000, true, prepareVectorAdd},
	{"vector_add_f64", "vector_add", 1 << 20, 5000, false, prepareVectorAdd64},
	{"vector_add_f32x4", "vector_add", 1 << 18, 1000, false, prepareVectorAdd4},
	{"saxpy", "saxpy", 2 << 20, 5000, true, prepareSaxpy},
	{"grid_stride", "grid_stride", 1 << 20, 5000, false, prepareGridStride},
	{"reduce", "reduce", 1 << 20, 5000, true, prepareReduce},
	{"reduce_tree", "reduce", 1 << 20, 5000, false, prepareReduceTree},
	{"matmul", "matmul", 256, 45, true, prepareMatmul},
	{"mandelbrot", "mandelbrot", 640, 70, true, prepareMandelbrot},
	{"histogram", "histogram", 2 << 20, 5000, true, prepareHistogram},
	{"softmax", "softmax", 2048, 7, true, prepareSoftmax},
	{"softmax_fastmath", "softmax_fastmath", 2048, 7, false, prepareFastSoftmax},
	{"collatz", "collatz", 1 << 19, 5000, true, prepareCollatz},
	{"one_lane", "collatz", 1 << 15, 1000, false, prepareOneLane},
	{"blur", "blur", 1024, 75, false, prepareBlur},
	{"transpose", "transpose", 1024, 75, false, prepareTranspose},
	{"prefix_sum", "prefix_sum", 1 << 18, 5000, false, preparePrefixSum},
}

func x(n int) [3]uint32       { return [3]uint32{uint32(n), 1, 1} }
func xy(n, m int) [3]uint32   { return [3]uint32{uint32(n), uint32(m), 1} }
func blocks(n, block int) int { return (n + block - 1) / block }
func source(n int) *rand.Rand { return rand.New(rand.NewPCG(1, uint64(n))) }
func uniform(n int) []float32 {
	r, v := source(n), make([]float32, n)
	for i := range v {
		v[i] = r.Float32()*2 - 1
	}
	return v
}

// uploads copies several inputs; outputs are given as zeroed inputs.
func (s *session) uploads(values ...any) ([]uint64, error) {
	addrs := make([]uint64, len(values))
	for i, v := range values {
		var err error
		if addrs[i], err = s.upload(v); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// equal compares bit by bit, so that a NaN equals itself and the sign of zero counts.
func equal[T float32 | float64 | int32 | uint32](got, want []T) error {
	bits := func(v T) uint64 {
		switch v := any(v).(type) {
		case float32:
			return uint64(math.Float32bits(v))
		case float64:
			return math.Float64bits(v)
		case int32:
			return uint64(v)
		}
		return uint64(any(v).(uint32))
	}
	for i := range want {
		if bits(got[i]) != bits(want[i]) {
			return fmt.Errorf("element %d is %v, want %v", i, got[i], want[i])
		}
	}
	return nil
}

// checkOf downloads a result and compares it.
func checkOf[T float32 | float64 | int32 | uint32](s *session, addr uint64, want []T) func() error {
	return func() error {
		got := make([]T, len(want))
		if err := s.download(addr, got); err != nil {
			return err
		}
		return equal(got, want)
	}
}

func prepareVectorAdd(s *session, n int) (run, check func() error, err error) {
	a, b, c := uniform(n), uniform(n + 1)[1:], make([]float32, n)
	p, err := s.uploads(a, b, c)
	for i := range c {
		c[i] = a[i] + b[i]
	}
	return func() error { return s.launch("vector_add", x(blocks(n, 256)), x(256), 0, p[0], p[1], p[2], n) }, checkOf(s, p[2], c), err
}

func prepareVectorAdd64(s *session, n int) (run, check func() error, err error) {
	a, b, c := make([]float64, n), make([]float64, n), make([]float64, n)
	r := source(n)
	for i := range a {
		a[i], b[i] = r.NormFloat64(), r.NormFloat64()
	}
	p, err := s.uploads(a, b, c)
	for i := range c {
		c[i] = a[i] + b[i]
	}
	return func() error {
		return s.launch("vector_add_f64", x(blocks(n, 256)), x(256), 0, p[0], p[1], p[2], n)
	}, checkOf(s, p[2], c), err
}

func prepareVectorAdd4(s *session, n int) (run, check func() error, err error) {
	a, b, c := uniform(4*n), uniform(4 * n)[:4*n], make([]float32, 4*n)
	p, err := s.uploads(a, b, c)
	for i := range c {
		c[i] = a[i] + b[i]
	}
	return func() error {
		return s.launch("vector_add_f32x4", x(blocks(n, 256)), x(256), 0, p[0], p[1], p[2], n)
	}, checkOf(s, p[2], c), err
}

// fma is a*b + c rounded once, for the references: in f64 the product is exact,
// and these inputs never meet the rare double rounding.
func fma(a, b, c float32) float32 { return float32(float64(a)*float64(b) + float64(c)) }

// prepareSaxpy and others that change their input restore it before each run.
func prepareSaxpy(s *session, n int) (run, check func() error, err error) {
	a, y, want := uniform(n), uniform(n + 7)[7:], make([]float32, n)
	p, err := s.uploads(a, y)
	for i := range want {
		want[i] = fma(2.5, a[i], y[i])
	}
	return s.restoring(p[1], y, func() error {
		return s.launch("saxpy", x(blocks(n, 256)), x(256), 0, float32(2.5), p[0], p[1], n)
	}), checkOf(s, p[1], want), err
}

func prepareGridStride(s *session, n int) (run, check func() error, err error) {
	a, y, want := uniform(n), uniform(n + 7)[7:], make([]float32, n)
	p, err := s.uploads(a, y)
	for i := range want {
		want[i] = fma(-1.25, a[i], y[i])
	}
	return s.restoring(p[1], y, func() error {
		return s.launch("grid_stride", x(16), x(256), 0, float32(-1.25), p[0], p[1], n)
	}), checkOf(s, p[1], want), err
}

// prepareReduce sums integers small enough for f32 to be exact in any order.
func prepareReduce(s *session, n int) (run, check func() error, err error) {
	const grid = 32
	v := make([]float32, n)
	var want float64
	r := source(n)
	for i := range v {
		v[i] = float32(r.IntN(9) - 4)
		want += float64(v[i])
	}
	p, err := s.uploads(v, make([]float32, grid))
	check = func() error {
		partial := make([]float32, grid)
		if err := s.download(p[1], partial); err != nil {
			return err
		}
		var got float64
		for _, f := range partial {
			got += float64(f)
		}
		return equal([]float64{got}, []float64{want})
	}
	return func() error { return s.launch("reduce", x(grid), x(256), 0, p[0], p[1], n) }, check, err
}

func prepareReduceTree(s *session, n int) (run, check func() error, err error) {
	v, total := make([]int32, n), make([]int32, 1)
	var want int32
	r := source(n)
	for i := range v {
		v[i] = int32(r.Uint32())
		want += v[i]
	}
	p, err := s.uploads(v, total)
	return s.restoring(p[1], total, func() error {
		return s.launch("reduce_tree", x(blocks(n, 256)), x(256), 4*256, p[0], p[1], n)
	}), checkOf(s, p[1], []int32{want}), err
}

func prepareMatmul(s *session, n int) (run, check func() error, err error) {
	m, k := n, n+1
	a, b, c := uniform(m*k), uniform(k*n), make([]float32, m*n)
	p, err := s.uploads(a, b, c)
	for i := range m {
		for j := range n {
			var sum float32
			for l := range k {
				sum = fma(a[i*k+l], b[l*n+j], sum)
			}
			c[i*n+j] = sum
		}
	}
	return func() error {
		return s.launch("matmul", xy(blocks(n, 16), blocks(m, 16)), xy(16, 16), 0, p[0], p[1], p[2], m, n, k)
	}, checkOf(s, p[2], c), err
}

func prepareMandelbrot(s *session, n int) (run, check func() error, err error) {
	const limit = 256
	w, h := n, n*3/4
	x0, y0, dx, dy := float32(-2), float32(-1.25), 3/float32(w), 2.5/float32(h)
	want := make([]int32, w*h)
	p, err := s.uploads(want)
	for py := range h {
		for px := range w {
			cx, cy := fma(float32(px), dx, x0), fma(float32(py), dy, y0)
			var a, b, aa, bb float32
			i := int32(0)
			for ; i < limit && aa+bb <= 4; i++ {
				t := cx + (aa - bb)
				b = fma(a+a, b, cy)
				a = t
				aa, bb = float32(a*a), float32(b*b)
			}
			want[py*w+px] = i
		}
	}
	return func() error {
		return s.launch("mandelbrot", xy(blocks(w, 16), blocks(h, 16)), xy(16, 16), 0, p[0], w, h, x0, y0, dx, dy, limit)
	}, checkOf(s, p[0], want), err
}
