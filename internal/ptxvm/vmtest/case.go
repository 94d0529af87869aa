// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/check"
	"github.com/cudago/cudago/internal/ptxvm/fault"
)

// A Case is one file of testdata: a module with a kernel "test" whose
// parameters are the addresses of its buffers, and a header of comments:
//
//	// in u32: 1 2 0xffffffff          an input buffer
//	// out f32: 0.5 nan 0f3f800000     an output buffer and what it must hold
//	// grid: 2                         default 1
//	// block: 64                       default: elements of the first output
//	// shared: 256                     dynamic shared memory
//	// fault: illegal address          the launch must fail so, with these words
//	// print: hello\n                  what the kernel must print
//	// budget: 1000                    Config.StepBudget; default 4 Mi
//	// load error: words               loading or decoding must fail so
//
// Values are decimal, hexadecimal, floats, or bits as 0f… and 0d…; v*n repeats
// one; "_" in an output is anything. A NaN matches every NaN, bits only themselves.
type Case struct {
	text       string
	buffers    []buffer
	grid       uint32
	block      uint32
	shared     uint32
	fault      string
	print      string
	prints     bool
	loadErrors string
	budget     uint32
	// Not of the file: what checks the launch, and the major compute capability.
	Watch   *check.Watch
	CCMajor int
}

type buffer struct {
	typ    ptxir.Type
	values []string
	out    bool
}

// ReadCase reads a file of testdata.
func ReadCase(t *testing.T, path string) *Case {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	c := &Case{text: string(text), grid: 1, budget: 1 << 22}
	for line := range strings.Lines(c.text) {
		comment, ok := strings.CutPrefix(line, "// ")
		if !ok {
			continue
		}
		key, value, ok := strings.Cut(strings.TrimSpace(comment), ":")
		if !ok {
			continue
		}
		c.header(t, key, strings.TrimSpace(value))
	}
	if c.block == 0 {
		c.block = 1
		for _, b := range c.buffers {
			if b.out {
				c.block = uint32(len(b.values))
				break
			}
		}
	}
	return c
}

func (c *Case) header(t *testing.T, key, value string) {
	number := func() uint32 {
		n, err := strconv.ParseUint(value, 0, 32)
		require.NoError(t, err)
		return uint32(n)
	}
	switch key {
	case "grid":
		c.grid = number()
	case "block":
		c.block = number()
	case "shared":
		c.shared = number()
	case "budget":
		c.budget = number()
	case "fault":
		c.fault = value
	case "load error":
		c.loadErrors = value
	case "print":
		text, err := strconv.Unquote(`"` + value + `"`)
		require.NoError(t, err)
		c.print, c.prints = text, true
	}
	dir, typ, _ := strings.Cut(key, " ")
	if dir != "in" && dir != "out" {
		return
	}
	b := buffer{typ: typeNamed(t, typ), out: dir == "out"}
	for _, v := range strings.Fields(value) {
		one, times, repeated := strings.Cut(v, "*")
		n := 1
		if repeated {
			var err error
			n, err = strconv.Atoi(times)
			require.NoError(t, err)
		}
		for range n {
			b.values = append(b.values, one)
		}
	}
	c.buffers = append(c.buffers, b)
}

func typeNamed(t *testing.T, name string) ptxir.Type {
	for typ := ptxir.B8; typ <= ptxir.BF16x2; typ++ {
		if typ.String() == name {
			return typ
		}
	}
	require.Failf(t, "unknown type", "%q", name)
	return 0
}

// bitsOf parses a value of a type.
func bitsOf(t *testing.T, typ ptxir.Type, s string) uint64 {
	if hex, ok := strings.CutPrefix(s, "0f"); ok && len(hex) == 8 {
		return parseBits(t, hex)
	}
	if hex, ok := strings.CutPrefix(s, "0d"); ok && len(hex) == 16 {
		return parseBits(t, hex)
	}
	switch typ {
	case ptxir.F32, ptxir.F64:
		v, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err)
		if typ == ptxir.F32 {
			return uint64(math.Float32bits(float32(v)))
		}
		return math.Float64bits(v)
	}
	if strings.HasPrefix(s, "-") {
		v, err := strconv.ParseInt(s, 0, 64)
		require.NoError(t, err)
		return uint64(v)
	}
	v, err := strconv.ParseUint(s, 0, 64)
	require.NoError(t, err)
	return v
}

func parseBits(t *testing.T, hex string) uint64 {
	v, err := strconv.ParseUint(hex, 16, 64)
	require.NoError(t, err)
	return v
}

func (b *buffer) bytes(t *testing.T) []byte {
	var out []byte
	for _, s := range b.values {
		var raw [8]byte
		if !b.out {
			binary.LittleEndian.PutUint64(raw[:], bitsOf(t, b.typ, s))
		}
		out = append(out, raw[:b.typ.Size()]...)
	}
	return out
}

// check compares an output buffer with what it must hold.
func (b *buffer) check(t *testing.T, got []byte) {
	size := b.typ.Size()
	var gotText, wantText []string
	for i, s := range b.values {
		var raw [8]byte
		copy(raw[:], got[i*size:][:size])
		v := binary.LittleEndian.Uint64(raw[:])
		text := b.show(v)
		if s == "_" || s == "nan" && text == "nan" {
			text = s
		} else if s != "nan" {
			mask := uint64(math.MaxUint64) >> (64 - 8*size)
			s = fmt.Sprintf("%s(%#x)", b.show(bitsOf(t, b.typ, s)&mask), bitsOf(t, b.typ, s)&mask)
			text = fmt.Sprintf("%s(%#x)", text, v)
		}
		gotText, wantText = append(gotText, text), append(wantText, s)
	}
	require.Equal(t, wantText, gotText)
}

func (b *buffer) show(v uint64) string {
	var f float64
	switch b.typ {
	case ptxir.F32:
		f = float64(math.Float32frombits(uint32(v)))
	case ptxir.F64:
		f = math.Float64frombits(v)
	default:
		return fmt.Sprint(v)
	}
	if f != f {
		return "nan"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// Run loads and launches the case. Its outputs start out as 0xcc bytes.
func (c *Case) Run(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{Workers: 2, StepBudget: uint64(c.budget), CCMajor: c.CCMajor})
	defer d.Close()
	k, err := c.load(d)
	if c.loadErrors != "" {
		require.ErrorContains(t, err, c.loadErrors)
		return
	}
	require.NoError(t, err)
	params := make([]byte, ParamBytes(k))
	addrs := make([]uint64, len(c.buffers))
	for i, b := range c.buffers {
		raw := b.bytes(t)
		if b.out {
			raw = bytes.Repeat([]byte{0xcc}, len(raw))
		}
		addrs[i], err = d.Memory().Alloc(uint64(len(raw)), "case")
		require.NoError(t, err)
		require.NoError(t, d.Memory().Write(addrs[i], raw))
		binary.LittleEndian.PutUint64(params[k.Params()[i].Offset:], addrs[i])
	}
	var printed bytes.Buffer
	err = k.Launch(&ptxvm.Launch{
		Grid: [3]uint32{c.grid, 1, 1}, Block: [3]uint32{c.block, 1, 1}, DynamicShared: c.shared, Params: params, Printf: &printed, Watch: c.Watch,
	})
	if c.fault != "" {
		require.ErrorContains(t, err, c.fault)
		require.ErrorAs(t, err, new(*fault.Fault))
		return
	}
	require.NoError(t, err)
	if c.prints {
		require.Equal(t, c.print, printed.String())
	}
	for i, b := range c.buffers {
		if b.out {
			got := make([]byte, len(b.values)*b.typ.Size())
			require.NoError(t, d.Memory().Read(got, addrs[i]))
			b.check(t, got)
		}
	}
}

func (c *Case) load(d *ptxvm.Device) (*ptxvm.Kernel, error) {
	ir, err := ptxir.Load("case", c.text)
	if err != nil {
		return nil, err
	}
	m, err := d.Load(ir)
	if err != nil {
		return nil, err
	}
	return m.Kernel("test")
}
