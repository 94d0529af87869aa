// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
)

// pack checks args against k's signature and returns the parameter block.
func pack(k *Kernel, args []any) ([]byte, error) {
	sig := k.signature
	if len(args) != len(sig) {
		return nil, badType("", "kernel %q takes %d arguments %v, got %d", k.name, len(sig), sig, len(args))
	}
	block := make([]byte, sig.Size())
	for i, p := range sig {
		if err := packOne(k, i, p, block[p.Offset:p.Offset+p.Size], args[i]); err != nil {
			return nil, err
		}
	}
	return block, nil
}

// packOne writes one argument to out, which has the parameter's size.
func packOne(k *Kernel, i int, p Param, out []byte, arg any) error {
	name := fmt.Sprintf("parameter %d of kernel %q", i, k.name)
	switch v := arg.(type) {
	case []byte:
		if len(v) != len(out) {
			return badValue(name, "has %d bytes, got %d", len(out), len(v))
		}
		copy(out, v)
		return nil
	case *Buffer:
		return packBuffer(k, name, p, out, v)
	case nil:
		return packPointer(name, p, out, 0, "nil")
	case bool:
		if v {
			return packInteger(name, p, out, 1, false)
		}
		return packInteger(name, p, out, 0, false)
	case float32:
		return packFloat(name, p, out, float64(v), 4)
	case float64:
		return packFloat(name, p, out, v, 8)
	}
	bits, negative, ok := integer(arg)
	if !ok {
		return badType(name, "wants %s, got %T", p.wants(), arg)
	}
	return packInteger(name, p, out, bits, negative)
}

// wants describes what can be given for p.
func (p Param) wants() string {
	if p.IsStruct() {
		return fmt.Sprintf("%d bytes", p.Size)
	}
	return p.Kind
}

// integer widens any Go integer to 64 bits, in two's complement.
func integer(arg any) (bits uint64, negative, ok bool) {
	signed := func(v int64) (uint64, bool, bool) { return uint64(v), v < 0, true }
	switch v := arg.(type) {
	case int:
		return signed(int64(v))
	case int8:
		return signed(int64(v))
	case int16:
		return signed(int64(v))
	case int32:
		return signed(int64(v))
	case int64:
		return signed(v)
	case uint:
		return uint64(v), false, true
	case uint8:
		return uint64(v), false, true
	case uint16:
		return uint64(v), false, true
	case uint32:
		return uint64(v), false, true
	case uint64:
		return v, false, true
	case uintptr:
		return uint64(v), false, true
	}
	return 0, false, false
}

func packBuffer(k *Kernel, name string, p Param, out []byte, b *Buffer) error {
	if b == nil {
		return packPointer(name, p, out, 0, "nil")
	}
	if b.IsClosed() {
		return &ClosedError{b.String()}
	}
	if b.Kind() == HostMemory {
		reads, err := k.Device().Attribute(PageableMemoryAccess)
		if err != nil {
			return err
		}
		if reads == 0 {
			return badType(name, "cannot be pageable host memory: %v does not read it; copy it to pinned or device memory", k.Device())
		}
	}
	return packPointer(name, p, out, b.Ptr(), "*cuda.Buffer")
}

func packPointer(name string, p Param, out []byte, ptr uint64, got string) error {
	if p.Size != 8 || p.IsFloat() || p.IsStruct() {
		return badType(name, "wants %s, got %s", p.wants(), got)
	}
	binary.NativeEndian.PutUint64(out, ptr)
	return nil
}

// packInteger accepts what fits the parameter as a signed or as an unsigned
// number: PTX does not tell which one the source had.
func packInteger(name string, p Param, out []byte, bits uint64, negative bool) error {
	if p.IsStruct() {
		return badType(name, "wants %s, got an integer", p.wants())
	}
	if p.IsFloat() {
		return packIntegerAsFloat(name, p, out, bits, negative)
	}
	width := 8 * len(out)
	if width < 64 {
		fits := bits>>width == 0
		if negative {
			fits = int64(bits) >= -1<<(width-1)
		}
		if !fits {
			return overflow(name, "is %s, which cannot hold %s", p.Kind, decimal(bits, negative))
		}
	}
	putUint(out, bits)
	return nil
}

func packIntegerAsFloat(name string, p Param, out []byte, bits uint64, negative bool) error {
	v := float64(bits)
	if negative {
		v = float64(int64(bits))
	}
	limit := float64(1 << 53)
	if p.Size == 4 {
		limit = 1 << 24
	}
	if math.Abs(v) > limit {
		return badValue(name, "is %s, which may not represent %s; give a float", p.Kind, decimal(bits, negative))
	}
	return packFloat(name, p, out, v, 8)
}

func packFloat(name string, p Param, out []byte, v float64, size int) error {
	switch {
	case p.Kind == "f64":
		binary.NativeEndian.PutUint64(out, math.Float64bits(v))
	case p.Kind == "f32":
		f := float32(v)
		if math.IsInf(float64(f), 0) && !math.IsInf(v, 0) {
			return overflow(name, "is f32, which cannot hold %g", v)
		}
		binary.NativeEndian.PutUint32(out, math.Float32bits(f))
	case p.Kind == "b32" && size == 4: // only the size is known, and it is this float's
		binary.NativeEndian.PutUint32(out, math.Float32bits(float32(v)))
	case p.Kind == "b64" && size == 8:
		binary.NativeEndian.PutUint64(out, math.Float64bits(v))
	default:
		return badType(name, "wants %s, got %g", p.wants(), v)
	}
	return nil
}

func putUint(out []byte, bits uint64) {
	switch len(out) {
	case 1:
		out[0] = byte(bits)
	case 2:
		binary.NativeEndian.PutUint16(out, uint16(bits))
	case 4:
		binary.NativeEndian.PutUint32(out, uint32(bits))
	case 8:
		binary.NativeEndian.PutUint64(out, bits)
	}
}

func decimal(bits uint64, negative bool) string {
	if negative {
		return fmt.Sprint(int64(bits))
	}
	return fmt.Sprint(bits)
}
