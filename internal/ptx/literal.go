// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// parseNumber reads the text of a numeric literal. ok is false when it is not
// one.
//
// PTX ISA, "Constants": integers in hexadecimal, octal, binary and decimal
// with an optional U, exact floats by their bits, and decimal floats, which
// are double precision.
func parseNumber(text string) (lit Literal, ok bool) {
	if len(text) == 1 {
		return Literal{Bits: uint64(text[0] - '0')}, class[text[0]]&classDigit != 0
	}
	if text[0] == '0' {
		switch text[1] {
		case 'f', 'F':
			return exactFloat(text, 8, LiteralF32)
		case 'd', 'D':
			return exactFloat(text, 16, LiteralF64)
		case 'x', 'X':
			return integer(text[2:], 16)
		case 'b', 'B':
			return integer(text[2:], 2)
		}
	}
	if strings.ContainsAny(text, ".eE") {
		// ParseFloat also takes 1_000, which PTX does not.
		f, err := strconv.ParseFloat(text, 64)
		if strings.Contains(text, "_") || err != nil && !math.IsInf(f, 0) {
			return lit, false
		}
		return Literal{Kind: LiteralF64, Bits: math.Float64bits(f)}, true
	}
	if text[0] == '0' && text != "0U" {
		return integer(text[1:], 8)
	}
	return integer(text, 10)
}

func exactFloat(text string, digits int, kind LiteralKind) (lit Literal, ok bool) {
	if len(text) != 2+digits {
		return lit, false
	}
	bits, err := strconv.ParseUint(text[2:], 16, 64)
	return Literal{Kind: kind, Bits: bits}, err == nil
}

func integer(digits string, base int) (lit Literal, ok bool) {
	if n := len(digits); n > 1 && digits[n-1] == 'U' {
		lit.Kind, digits = LiteralUnsigned, digits[:n-1]
	}
	bits, err := strconv.ParseUint(digits, base, 64)
	if errors.Is(err, strconv.ErrRange) && base != 2 {
		bits, err = wrapped(digits, base)
	}
	if int64(bits) < 0 {
		lit.Kind = LiteralUnsigned
	}
	lit.Bits = bits
	return lit, err == nil
}

// wrapped is the low half of a number of more than 64 bits. ptxas takes it for
// that, but for decimal ones whose overflow it happens to notice.
func wrapped(digits string, base int) (bits uint64, err error) {
	for i := range len(digits) {
		digit, err := strconv.ParseUint(digits[i:i+1], base, 64)
		if err != nil {
			return 0, err
		}
		next := bits * uint64(base)
		if base == 10 && next < bits {
			return 0, strconv.ErrRange
		}
		bits = next + digit
	}
	return bits, nil
}

// Integer reports an integer literal of either signedness.
func (l Literal) Integer() bool { return l.Kind <= LiteralUnsigned }

// Float64 is the value as a double, whatever the kind.
func (l Literal) Float64() float64 {
	switch l.Kind {
	case LiteralF32:
		return float64(math.Float32frombits(uint32(l.Bits)))
	case LiteralF64:
		return math.Float64frombits(l.Bits)
	case LiteralUnsigned:
		return float64(l.Bits)
	}
	return float64(int64(l.Bits))
}

// Float32Bits is the value as the bits of a float. Exact literals keep theirs,
// NaN payloads included; doubles are rounded to the nearest.
func (l Literal) Float32Bits() uint32 {
	if l.Kind == LiteralF32 {
		return uint32(l.Bits)
	}
	return math.Float32bits(float32(l.Float64()))
}

// String returns the literal as PTX that reads back as the same literal.
func (l Literal) String() string {
	switch l.Kind {
	case LiteralF32:
		return "0f" + hexDigits(l.Bits, 8)
	case LiteralF64:
		return "0d" + hexDigits(l.Bits, 16)
	case LiteralUnsigned:
		return strconv.FormatUint(l.Bits, 10) + "U"
	}
	return strconv.FormatInt(int64(l.Bits), 10)
}

func hexDigits(bits uint64, n int) string {
	s := strings.ToUpper(strconv.FormatUint(bits, 16))
	return strings.Repeat("0", n-len(s)) + s
}
