// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/fault"
	"github.com/cudago/cudago/internal/ptxvm/lane"
	"github.com/cudago/cudago/internal/ptxvm/memory"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// builtinFn runs a device function that the driver supplies.
type builtinFn func(w *warp, b *block, mask uint32)

var builtins = [...]builtinFn{
	ptxir.BuiltinVprintf:       vprintf,
	ptxir.BuiltinAssertFail:    assertFail,
	ptxir.BuiltinMalloc:        deviceMalloc,
	ptxir.BuiltinAlignedMalloc: deviceMalloc,
	ptxir.BuiltinFree:          deviceFree,

	ptxir.BuiltinSetConditional: setConditional,
}

// arg reads argument i of a call in a lane, at most 8 bytes.
func (w *warp) arg(b *block, i, l int) uint64 {
	var v [8]byte
	copy(v[:], w.argBytes(b.call.args[i], l))
	return binary.LittleEndian.Uint64(v[:])
}

// setResult writes the call's first result in a lane.
func (w *warp) setResult(b *block, l int, v uint64) {
	if len(b.call.rets) == 0 {
		return
	}
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], v)
	copy(w.argBytes(b.call.rets[0], l), raw[:])
}

func (w *warp) argBytes(a argument, l int) []byte {
	start := uint64(w.Index*register.Lanes+l)*w.cta.LocalStride + uint64(w.frames[w.running.frame].local+a.caller)
	return w.cta.Local[start:][:a.size]
}

// generic returns size bytes at a generic address, for functions on the host's
// side of the kernel.
func (w *warp) generic(addr, size uint64, l int) []byte {
	s, ok := w.GenericSite(addr, size)
	if off := addr - s.Base; !ok || off >= s.Span || size > s.Span-off {
		w.Fault(&lane.Stop{Kind: fault.IllegalAddress, Lane: l, Addr: addr, Size: size, Limit: s.Span})
	}
	return s.Bytes(addr, size, w.Index*register.Lanes+l)
}

// cString reads a string up to its zero byte, or to 64 KiB.
func (w *warp) cString(addr uint64, l int) string {
	var b strings.Builder
	for b.Len() < 1<<16 {
		c := w.generic(addr+uint64(b.Len()), 1, l)[0]
		if c == 0 {
			break
		}
		b.WriteByte(c)
	}
	return b.String()
}

// vprintf formats lane by lane and prints what one warp prints in one write.
func vprintf(w *warp, b *block, mask uint32) {
	var out strings.Builder
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		n := w.format(&out, w.cString(w.arg(b, 0, l), l), w.arg(b, 1, l), l)
		w.setResult(b, l, uint64(n))
	}
	r := w.cta.run
	r.printMu.Lock()
	defer r.printMu.Unlock()
	if r.printf != nil {
		// What cannot be written is lost, as on a device whose buffer is full.
		_, _ = r.printf.Write([]byte(out.String()))
	}
}

// format writes one printf and returns how many arguments it took. Arguments
// lie packed at buf, each aligned to its size: 4 bytes for int, 8 for the rest.
func (w *warp) format(out *strings.Builder, format string, buf uint64, l int) int {
	args := 0
	next := func(size uint64) uint64 {
		buf = (buf + size - 1) &^ (size - 1)
		raw := w.generic(buf, size, l)
		if w.cta.run.watch != nil {
			w.cta.watch.Print(&w.Warp, l, &w.at.Place, buf, size)
		}
		buf += size
		args++
		if size == 4 {
			return uint64(binary.LittleEndian.Uint32(raw))
		}
		return binary.LittleEndian.Uint64(raw)
	}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out.WriteByte(format[i])
			continue
		}
		spec := parseSpec(format[i+1:])
		if spec.verb == 0 {
			out.WriteString(format[i:])
			break
		}
		i += spec.length
		w.formatOne(out, &spec, next, l)
	}
	return args
}

// printSpec is one conversion of a printf format.
type printSpec struct {
	flags  string // flags, width and precision; '*' for those in arguments
	long   bool
	verb   byte
	length int
}

func parseSpec(s string) printSpec {
	i := 0
	for i < len(s) && strings.IndexByte("-+ #0123456789.*", s[i]) >= 0 {
		i++
	}
	p := printSpec{flags: s[:i]}
	for i < len(s) && strings.IndexByte("hlLqjzt", s[i]) >= 0 {
		p.long = p.long || s[i] != 'h'
		i++
	}
	if i < len(s) {
		p.verb, p.length = s[i], i+1
	}
	return p
}

func (w *warp) formatOne(out *strings.Builder, p *printSpec, next func(uint64) uint64, l int) {
	if p.verb == '%' {
		out.WriteByte('%')
		return
	}
	flags := p.flags
	for strings.Contains(flags, "*") {
		flags = strings.Replace(flags, "*", fmt.Sprint(int32(next(4))), 1)
	}
	size := uint64(4)
	if p.long {
		size = 8
	}
	switch p.verb {
	case 'd', 'i':
		v := int64(next(size))
		if !p.long {
			v = int64(int32(v))
		}
		fmt.Fprintf(out, "%"+integerFlags(flags)+"d", v)
	case 'u':
		fmt.Fprintf(out, "%"+integerFlags(flags)+"d", next(size))
	case 'x', 'X', 'o':
		fmt.Fprintf(out, "%"+integerFlags(flags)+string(p.verb), next(size))
	case 'c':
		fmt.Fprintf(out, "%"+flags+"s", string([]byte{byte(next(4))}))
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		formatFloat(out, flags, p.verb, math.Float64frombits(next(8)))
	case 's':
		fmt.Fprintf(out, "%"+flags+"s", w.cString(next(8), l))
	case 'p':
		fmt.Fprintf(out, "%"+flags+"s", fmt.Sprintf("0x%x", next(8)))
	default:
		out.WriteString("%" + p.flags + string(p.verb))
	}
}

// integerFlags: in C a precision switches the 0 flag off for integers.
func integerFlags(flags string) string {
	if strings.Contains(flags, ".") {
		head, rest, _ := strings.Cut(flags, ".")
		sign := ""
		for len(head) > 0 && strings.IndexByte("-+ #0", head[0]) >= 0 {
			if head[0] != '0' {
				sign += head[:1]
			}
			head = head[1:]
		}
		return sign + head + "." + rest
	}
	return flags
}

// formatFloat prints as C does where Go differs: infinities, NaN, and %g.
func formatFloat(out *strings.Builder, flags string, verb byte, v float64) {
	if math.IsInf(v, 0) || v != v {
		width, _, _ := strings.Cut(strings.ReplaceAll(flags, "0", ""), ".")
		text := "nan"
		switch {
		case math.IsInf(v, 1) && strings.Contains(flags, "+"):
			text = "+inf"
		case math.IsInf(v, 1):
			text = "inf"
		case math.IsInf(v, -1):
			text = "-inf"
		}
		fmt.Fprintf(out, "%"+strings.ReplaceAll(width, "+", "")+"s", text)
		return
	}
	switch verb {
	case 'g', 'G':
		if !strings.Contains(flags, ".") {
			flags += ".6"
		}
	case 'a':
		verb = 'x'
	case 'A':
		verb = 'X'
	}
	fmt.Fprintf(out, "%"+flags+string(verb), v)
}

// assertFail ends the kernel with the assertion's own words.
func assertFail(w *warp, b *block, mask uint32) {
	l := bits.TrailingZeros32(mask)
	text := make([]string, 4)
	for i := range text {
		if i != 2 {
			text[i] = w.cString(w.arg(b, i, l), l)
		}
	}
	w.Fault(&lane.Stop{Kind: fault.Assert, Lane: l, Detail: fmt.Sprintf("%s:%d: %s: assertion `%s` failed", text[1], uint32(w.arg(b, 2, l)), text[3], text[0])})
}

// deviceMalloc allocates from the device's memory. It returns null when the memory
// is full, and for an alignment that is not a power of two.
func deviceMalloc(w *warp, b *block, mask uint32) {
	m := w.cta.kernel.module.device.memory
	for ; mask != 0; mask &= mask - 1 {
		l := bits.TrailingZeros32(mask)
		var addr uint64
		if align, ok := w.alignment(b, l); ok {
			// Where it fails, addr is 0.
			addr, _ = m.AllocAligned(w.arg(b, 0, l), align, "malloc in kernel "+w.cta.kernel.ir.Name)
		}
		w.setResult(b, l, addr)
	}
}

// alignment is the alignment of the memory that a lane allocates.
func (w *warp) alignment(b *block, l int) (align uint64, ok bool) {
	if len(b.call.args) == 1 { // malloc
		return memory.AllocAlign, true
	}
	align = w.arg(b, 1, l)
	return max(align, memory.AllocAlign), bits.OnesCount64(align) == 1 && align <= maxAlign
}

// maxAlign is more than any object needs. There is a limit because alignment uses
// up addresses, which are never reused.
const maxAlign = 1 << 30

func deviceFree(w *warp, b *block, mask uint32) {
	m := w.cta.kernel.module.device.memory
	for ; mask != 0; mask &= mask - 1 {
		l := bits.TrailingZeros32(mask)
		addr := w.arg(b, 0, l)
		if addr == 0 {
			continue
		}
		if err := m.Free(addr, "free in kernel "+w.cta.kernel.ir.Name); err != nil {
			w.Fault(&lane.Stop{Kind: fault.IllegalAddress, Lane: l, Addr: addr, Size: 1})
		}
	}
}

// setConditional gives conditions of graphs their values, lane by lane: with
// CUDA it is undefined which of several wins, here it is the last.
func setConditional(w *warp, b *block, mask uint32) {
	set := w.cta.run.setConditional
	for ; mask != 0; mask &= mask - 1 {
		l := bits.TrailingZeros32(mask)
		handle := w.arg(b, 0, l)
		if set == nil || !set(handle, uint32(w.arg(b, 1, l))) {
			w.Fault(&lane.Stop{
				Kind: fault.Illegal, Lane: l,
				Detail: fmt.Sprintf("cudaGraphSetConditional: %#x is not the handle of a condition of a graph", handle),
			})
		}
	}
}
