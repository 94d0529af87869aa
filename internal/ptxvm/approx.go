// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"math"

	"github.com/cudago/cudago/internal/ptxir"
)

// The approximate operations. PTX bounds their error and leaves the bits open;
// these are as good as f64 arithmetic rounded to f32, so within every bound,
// but not the bits of any GPU.

// exp2Table holds 2^(i/32).
var exp2Table = func() (t [32]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / 32)
	}
	return t
}()

// exp2 is 2^x to about 1e-12, for finite x: 2^(k/32) from a table and a
// polynomial for the rest, which is at most 1/64.
func exp2(x float64) float64 {
	if x > 1030 || x < -1080 {
		return math.Exp2(x)
	}
	k := math.Floor(x*32 + 0.5)
	r := (x - k/32) * math.Ln2
	p := 1 + r*(1+r*(1.0/2+r*(1.0/6+r*(1.0/24))))
	n := int(k)
	if e := n >> 5; e > -1000 && e < 1000 {
		return exp2Table[n&31] * p * math.Float64frombits(uint64(e+1023)<<52)
	}
	return math.Exp2(x)
}

func ex232(ir *ptxir.Instr, x float32) float32 {
	x = in32(ir, x)
	if x != x {
		return nan32
	}
	return out32(ir, float32(exp2(float64(x))))
}

func lg232(ir *ptxir.Instr, x float32) float32 {
	return out32(ir, float32(math.Log2(float64(in32(ir, x)))))
}

func sin32(ir *ptxir.Instr, x float32) float32 {
	return out32(ir, float32(math.Sin(float64(in32(ir, x)))))
}

func cos32(ir *ptxir.Instr, x float32) float32 {
	return out32(ir, float32(math.Cos(float64(in32(ir, x)))))
}

func tanh32(ir *ptxir.Instr, x float32) float32 {
	return out32(ir, float32(math.Tanh(float64(in32(ir, x)))))
}
