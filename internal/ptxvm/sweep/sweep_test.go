// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxvm"
	"github.com/cudago/cudago/internal/ptxvm/thin"
	"github.com/cudago/cudago/internal/ptxvm/vmtest"
)

// The sweeps run an instruction in a kernel over very many inputs and compare
// every result with a reference that shares no code with the simulated device.
//
// By default they stride through the inputs and visit the neighbourhood of
// everything special. All 2^32 inputs of one instruction take minutes on one core:
//
//	go test ./internal/ptxvm/sweep -run 'Sweep' -sweep=full -v -timeout 10h    (make test-sweep)
//	go test ./internal/ptxvm/sweep -run 'Sweep/cvt.rni.s32.f32$' -sweep=full -v
//	go test ./internal/ptxvm/sweep -run 'Sweep' -sweep=1009 -v                 (that stride)
//
// CUDAGO_SWEEP in the environment says the same as the flag.
var sweepFlag = flag.String("sweep", os.Getenv("CUDAGO_SWEEP"), `inputs of the sweeps: "full" is all, a number is a stride`)

// defaultStride is a prime that leaves some 20000 of 2^32 inputs.
const defaultStride = 214783

// A sweep is one instruction with the check of its results.
type sweep struct {
	name string
	// body computes Y from X, both b32 registers, or YL, a b64 one. Labels and
	// registers that it declares are its own.
	body string
	wide bool // the result is YL
	// want is the result for an input. Where PTX leaves a choice, fits decides
	// instead.
	want func(x uint32) uint64
	fits func(x uint32, got uint64) bool
}

// holds reports whether a result is right.
func (s *sweep) holds(x uint32, got uint64) bool {
	if s.fits != nil {
		return s.fits(x, got)
	}
	return got == s.want(x)
}

// sweepPTX is the kernel around an instruction: four inputs a thread.
func (s *sweep) ptx() string {
	var b strings.Builder
	b.WriteString(`
.version 8.6
.target sm_100
.address_size 64
.visible .entry sweep(.param .u64 in, .param .u64 out)
{
	.reg .b64 %in, %out, %at, %v<4>;
	.reg .b32 %i, %t, %x<4>, %y<4>;
	ld.param.u64 %in, [in];
	ld.param.u64 %out, [out];
	mov.u32 %i, %ctaid.x;
	mov.u32 %t, %tid.x;
	mad.lo.u32 %i, %i, 256, %t;
	mul.wide.u32 %at, %i, 16;
	add.u64 %in, %in, %at;
	ld.global.v4.b32 {%x0, %x1, %x2, %x3}, [%in];
`)
	for i := range 4 {
		fill := strings.NewReplacer("YL", fmt.Sprintf("%%v%d", i), "X", fmt.Sprintf("%%x%d", i), "Y", fmt.Sprintf("%%y%d", i))
		b.WriteString("\t{ " + fill.Replace(s.body) + " }\n")
	}
	if s.wide {
		b.WriteString("\tmul.wide.u32 %at, %i, 32;\n\tadd.u64 %out, %out, %at;\n" +
			"\tst.global.v2.b64 [%out], {%v0, %v1};\n\tst.global.v2.b64 [%out+16], {%v2, %v3};\n")
	} else {
		b.WriteString("\tadd.u64 %out, %out, %at;\n\tst.global.v4.b32 [%out], {%y0, %y1, %y2, %y3};\n")
	}
	return b.String() + "\tret;\n}\n"
}

// inputSet is what a sweep runs over.
type inputSet struct {
	n    uint64
	list []uint32 // nil: 0, 1, 2 … n-1
}

// thinned leaves one input in thin.OneIn.
func (s *inputSet) thinned() *inputSet {
	if thin.OneIn == 1 || *sweepFlag != "" {
		return s
	}
	var list []uint32
	for i := uint64(0); i < s.n; i += thin.OneIn {
		x := uint32(i)
		if s.list != nil {
			x = s.list[i]
		}
		list = append(list, x)
	}
	return &inputSet{uint64(len(list)), list}
}

// fill writes inputs from first on, and returns how many. What is left of the
// last chunk repeats the first input, so that every thread has one.
func (s *inputSet) fill(dst []byte, first uint64) int {
	n := int(min(s.n-first, sweepChunk))
	for i := range n {
		x := uint32(first) + uint32(i)
		if s.list != nil {
			x = s.list[x]
		}
		binary.LittleEndian.PutUint32(dst[4*i:], x)
	}
	for i := n; i < sweepChunk; i++ {
		binary.LittleEndian.PutUint32(dst[4*i:], binary.LittleEndian.Uint32(dst))
	}
	return n
}

// inputs32 are the 2^32 inputs, or a selection of them.
var inputs32 = sync.OnceValue(func() *inputSet {
	stride := uint64(defaultStride)
	if *sweepFlag == "full" {
		return &inputSet{n: 1 << 32}
	} else if *sweepFlag != "" {
		if _, err := fmt.Sscan(*sweepFlag, &stride); err != nil || stride == 0 {
			panic(fmt.Sprintf("-sweep=%s: want full or a stride", *sweepFlag))
		}
	}
	list := specialInputs()
	for x := uint64(0); x < 1<<32; x += stride {
		list = append(list, uint32(x))
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return &inputSet{uint64(len(list)), list}
})

// specialInputs are the neighbourhoods of the hard cases, as f32 and as
// integers: every exponent's ends, every single bit of the fraction and every
// run of leading ones (half-way cases, limits of narrower types), each with its
// neighbours; sums of two powers of two.
func specialInputs() []uint32 {
	var list []uint32
	around := func(x uint32, by int32) {
		for d := -by; d <= by; d++ {
			list = append(list, x+uint32(d), (x+uint32(d))^1<<31)
		}
	}
	for exp := range uint32(256) {
		if !nearLimit(exp) {
			continue // the stride goes there
		}
		around(exp<<23, 2)
		for k := range uint32(23) {
			around(exp<<23|1<<k, 1)
			around(exp<<23|(1<<23-1)&^(1<<k-1), 1)
			around(exp<<23|1<<22|1<<k, 1)
		}
	}
	for i := range 32 {
		for j := range i {
			around(1<<i+1<<j, 1)
		}
	}
	return list
}

// nearLimit reports whether an exponent field of f32 is near the ends of the
// range of some format or integer type, or near one.
func nearLimit(exp uint32) bool {
	for _, r := range [][2]uint32{
		{0, 2}, {101, 114}, {116, 136}, // subnormals of f32, f16 and the 8-bit formats; up to 8 bits
		{141, 144}, {149, 151}, {157, 159}, {189, 191}, {253, 255}, // 16, 24, 32, 64 bits; the end
	} {
		if exp >= r[0] && exp <= r[1] {
			return true
		}
	}
	return false
}

// sweepRig is the machinery of sweeps: for each core a device, with buffers.
type sweepRig struct {
	devices []*sweepDevice
}

type sweepDevice struct {
	d       *ptxvm.Device
	in, out uint64
	inHost  []byte
	outHost []byte
}

func newSweepRig(t *testing.T) *sweepRig {
	r := &sweepRig{}
	for range runtime.GOMAXPROCS(0) {
		s := &sweepDevice{d: ptxvm.NewDevice(ptxvm.Config{Workers: 1, CCMajor: 10})}
		t.Cleanup(s.d.Close)
		s.in, s.inHost = s.buffer(t, 4*sweepChunk)
		s.out, s.outHost = s.buffer(t, 8*sweepChunk)
		r.devices = append(r.devices, s)
	}
	return r
}

func (s *sweepDevice) buffer(t *testing.T, size uint64) (uint64, []byte) {
	addr, err := s.d.Memory().Alloc(size, "sweep")
	require.NoError(t, err)
	host, err := s.d.Memory().Slice(addr, size)
	require.NoError(t, err)
	return addr, host
}

// sweepResult is what a sweep found.
type sweepResult struct {
	inputs, wrong atomic.Uint64

	mu       sync.Mutex
	examples []string // guarded by mu; a few
	err      error    // guarded by mu; a launch failed
}

func (r *sweepResult) miss(s *sweep, x uint32, got uint64) {
	if r.wrong.Add(1) > 5 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	text := fmt.Sprintf("%s of %#08x gives %#x", s.name, x, got)
	if s.want != nil {
		text += fmt.Sprintf(", want %#x", s.want(x))
	}
	r.examples = append(r.examples, text)
}

// run sweeps one instruction on all devices.
func (r *sweepRig) run(t *testing.T, s *sweep, set *inputSet) *sweepResult {
	t.Helper()
	var next atomic.Uint64
	var group sync.WaitGroup
	result := &sweepResult{}
	text := s.ptx()
	for _, d := range r.devices {
		k := vmtest.Kernel(t, vmtest.Load(t, d.d, s.name, text), "sweep")
		group.Go(func() {
			for {
				first := next.Add(sweepChunk) - sweepChunk
				if first >= set.n {
					return
				}
				if err := d.chunk(k, s, set, first, result); err != nil {
					result.mu.Lock()
					result.err = err
					result.mu.Unlock()
					return
				}
			}
		})
	}
	group.Wait()
	require.NoError(t, result.err)
	require.Equal(t, set.n, result.inputs.Load())
	return result
}

// chunk runs and checks the inputs from first on.
func (d *sweepDevice) chunk(k *ptxvm.Kernel, s *sweep, set *inputSet, first uint64, result *sweepResult) error {
	n := set.fill(d.inHost, first)
	err := k.Launch(&ptxvm.Launch{Grid: [3]uint32{sweepChunk / 1024, 1, 1}, Block: [3]uint32{256, 1, 1}, Params: vmtest.Pack(d.in, d.out)})
	if err != nil {
		return err
	}
	for i := range n {
		x := binary.LittleEndian.Uint32(d.inHost[4*i:])
		var got uint64
		if s.wide {
			got = binary.LittleEndian.Uint64(d.outHost[8*i:])
		} else {
			got = uint64(binary.LittleEndian.Uint32(d.outHost[4*i:]))
		}
		if !s.holds(x, got) {
			result.miss(s, x, got)
		}
	}
	result.inputs.Add(uint64(n))
	return nil
}

// sweepAll runs each sweep as a subtest.
func sweepAll(t *testing.T, set *inputSet, sweeps []sweep) {
	rig := newSweepRig(t)
	set = set.thinned()
	for _, s := range sweeps {
		t.Run(s.name, func(t *testing.T) {
			start := time.Now()
			result := rig.run(t, &s, set)
			t.Logf("%d inputs, %d wrong (%v)", result.inputs.Load(), result.wrong.Load(), time.Since(start).Round(time.Millisecond))
			if result.wrong.Load() != 0 {
				t.Errorf("%d of %d results are wrong:\n%s", result.wrong.Load(), set.n, strings.Join(result.examples, "\n"))
			}
		})
	}
}

// TestSweepFindsOneWrongResult holds the machinery to its purpose: it must find
// one wrong bit of one input.
func TestSweepFindsOneWrongResult(t *testing.T) {
	set := inputs32()
	odd := uint32(0x3f800001)
	s := sweep{
		name: "mostly not",
		body: fmt.Sprintf(".reg .pred p; not.b32 Y, X; setp.eq.u32 p, X, %d; @p xor.b32 Y, Y, 4;", odd),
		want: func(x uint32) uint64 { return uint64(^x) },
	}
	result := newSweepRig(t).run(t, &s, set)
	require.Equal(t, uint64(1), result.wrong.Load())
	require.Equal(t, []string{"mostly not of 0x3f800001 gives 0xc07ffffa, want 0xc07ffffe"}, result.examples)
}
