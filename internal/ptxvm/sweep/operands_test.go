// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/thin"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// Operations with several operands cannot be swept: these tests run them in a
// kernel over lists of operands, edge cases crossed and random ones.

// operands are three numbers, of which an operation takes the low bits it needs.
type operands [3]uint64

// operation is an instruction over operands.
type operation struct {
	name string
	// body computes Y, or YL if wide, from A, B, C (b32) or AL, BL, CL (b64).
	body string
	wide bool
	// want is the result; fits decides where PTX leaves a choice.
	want func(o operands) uint64
	fits func(o operands, got uint64) bool
}

// operandPTX is the kernel around an operation, one row of operands a thread.
func (p *operation) ptx() string {
	fill := strings.NewReplacer("YL", "%yl", "Y", "%y", "AL", "%al", "BL", "%bl", "CL", "%cl", "A", "%a", "B", "%b", "C", "%c")
	store := "\tcvt.u64.u32 %yl, %y;\n"
	if p.wide {
		store = ""
	}
	return `
.version 8.6
.target sm_100
.address_size 64
.visible .entry sweep(.param .u64 in, .param .u64 out)
{
	.reg .b64 %in, %out, %at, %al, %bl, %cl, %yl;
	.reg .b32 %i, %t, %a, %b, %c, %y;
	ld.param.u64 %in, [in];
	ld.param.u64 %out, [out];
	mov.u32 %i, %ctaid.x;
	mov.u32 %t, %tid.x;
	mad.lo.u32 %i, %i, 256, %t;
	mul.wide.u32 %at, %i, 24;
	add.u64 %in, %in, %at;
	mul.wide.u32 %at, %i, 8;
	add.u64 %out, %out, %at;
	ld.global.b64 %al, [%in];
	ld.global.b64 %bl, [%in+8];
	ld.global.b64 %cl, [%in+16];
	cvt.u32.u64 %a, %al;
	cvt.u32.u64 %b, %bl;
	cvt.u32.u64 %c, %cl;
	{ ` + fill.Replace(p.body) + " }\n" + store + "\tst.global.b64 [%out], %yl;\n\tret;\n}\n"
}

// operandRig holds one list of operands on a device.
type operandRig struct {
	d       *ptxvm.Device
	list    []operands
	in, out uint64
}

func newOperandRig(t *testing.T, list []operands) *operandRig {
	r := &operandRig{d: ptxvm.NewDevice(ptxvm.Config{CCMajor: 10}), list: list}
	t.Cleanup(r.d.Close)
	for len(r.list)%256 != 0 {
		r.list = append(r.list, r.list[0])
	}
	var raw []byte
	for _, o := range r.list {
		for _, v := range o {
			raw = binary.LittleEndian.AppendUint64(raw, v)
		}
	}
	var err error
	r.in, err = r.d.Memory().Alloc(uint64(len(raw)), "operands")
	require.NoError(t, err)
	require.NoError(t, r.d.Memory().Write(r.in, raw))
	r.out, err = r.d.Memory().Alloc(uint64(8*len(r.list)), "results")
	require.NoError(t, err)
	return r
}

// run checks one operation over all operands, and returns what is wrong.
func (r *operandRig) run(t *testing.T, p *operation) (wrong int, examples []string) {
	t.Helper()
	k := vmtest.Kernel(t, vmtest.Load(t, r.d, p.name, p.ptx()), "sweep")
	require.NoError(t, k.Launch(&ptxvm.Launch{
		Grid: [3]uint32{uint32(len(r.list) / 256), 1, 1}, Block: [3]uint32{256, 1, 1}, Params: vmtest.Pack(r.in, r.out),
	}))
	raw := make([]byte, 8*len(r.list))
	require.NoError(t, r.d.Memory().Read(raw, r.out))
	for i, o := range r.list {
		got := binary.LittleEndian.Uint64(raw[8*i:])
		if p.want != nil && got == p.want(o) || p.fits != nil && p.fits(o, got) {
			continue
		}
		if wrong++; wrong <= 5 {
			text := fmt.Sprintf("%s of %#x, %#x, %#x gives %#x", p.name, o[0], o[1], o[2], got)
			if p.want != nil {
				text += fmt.Sprintf(", want %#x", p.want(o))
			}
			examples = append(examples, text)
		}
	}
	return wrong, examples
}

// runAll runs each operation as a subtest.
func (r *operandRig) runAll(t *testing.T, list []operation) {
	for _, p := range list {
		t.Run(p.name, func(t *testing.T) {
			if wrong, examples := r.run(t, &p); wrong != 0 {
				t.Errorf("%d of %d results are wrong:\n%s", wrong, len(r.list), strings.Join(examples, "\n"))
			}
		})
	}
}

// crossed are all pairs of edge cases, each with some third ones (with every one
// in a full sweep), and n triples from random; of all these one in thin.OneIn.
func crossed(edges []uint64, n int, random func() operands) []operands {
	var list []operands
	step := 7
	if *sweepFlag == "full" {
		step = 1
	}
	for i, a := range edges {
		for j, b := range edges {
			for k := (i + j) % step; k < len(edges); k += step {
				list = append(list, operands{a, b, edges[k]})
			}
		}
	}
	for range n {
		list = append(list, random())
	}
	if thin.OneIn == 1 || *sweepFlag != "" {
		return list
	}
	var some []operands
	for i := 0; i < len(list); i += thin.OneIn {
		some = append(some, list[i])
	}
	return some
}

// TestOperandsFindOneWrongResult holds the machinery to its purpose.
func TestOperandsFindOneWrongResult(t *testing.T) {
	list := append(crossed([]uint64{1, 2}, 1000, func() operands { return operands{rand.Uint64() | 8, 0, 0} }), operands{1, 2, 3})
	p := operation{
		name: "mostly or", wide: true, body: ".reg .pred p; or.b64 YL, AL, BL; setp.eq.u64 p, CL, 3; @p setp.eq.u64 p, BL, 2; @p setp.eq.u64 p, AL, 1; @p mov.u64 YL, 7;",
		want: func(o operands) uint64 { return o[0] | o[1] },
	}
	wrong, examples := newOperandRig(t, list).run(t, &p)
	require.Equal(t, 1, wrong)
	require.Equal(t, []string{"mostly or of 0x1, 0x2, 0x3 gives 0x7, want 0x3"}, examples)
}
