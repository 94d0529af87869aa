// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

// Type is a fundamental, alternate or opaque type.
//
// PTX ISA, "Types", "Alternate Floating-Point Data Formats", "Texture Sampler
// and Surface Types".
type Type uint8

// The types, grouped so that the first of each group can be compared with.
const (
	NoType Type = iota
	Pred
	B8
	B16
	B32
	B64
	B128
	U8
	U16
	U32
	U64
	S8
	S16
	S32
	S64
	F16
	F16x2
	BF16
	BF16x2
	TF32
	F32
	F64
	TexRef
	SamplerRef
	SurfRef
)

var types = [...]struct {
	name string
	size uint32
}{
	NoType: {"", 0}, Pred: {"pred", 1},
	B8: {"b8", 1}, B16: {"b16", 2}, B32: {"b32", 4}, B64: {"b64", 8}, B128: {"b128", 16},
	U8: {"u8", 1}, U16: {"u16", 2}, U32: {"u32", 4}, U64: {"u64", 8},
	S8: {"s8", 1}, S16: {"s16", 2}, S32: {"s32", 4}, S64: {"s64", 8},
	F16: {"f16", 2}, F16x2: {"f16x2", 4}, BF16: {"bf16", 2}, BF16x2: {"bf16x2", 4},
	TF32: {"tf32", 4}, F32: {"f32", 4}, F64: {"f64", 8},
	TexRef: {"texref", 8}, SamplerRef: {"samplerref", 8}, SurfRef: {"surfref", 8},
}

var typeByName = func() map[string]Type {
	m := make(map[string]Type, len(types))
	for t, x := range types {
		m[x.name] = Type(t)
	}
	return m
}()

// TypeByName returns the type called name, without its dot, or NoType.
func TypeByName(name string) Type { return typeByName[name] }

// String returns the name without its dot.
func (t Type) String() string { return types[t].name }

// Size is the size of one value in memory, in bytes.
func (t Type) Size() uint32 { return types[t].size }

// Signed reports a signed integer type.
func (t Type) Signed() bool { return t >= S8 && t <= S64 }

// Float reports a floating-point type, packed and alternate ones included.
func (t Type) Float() bool { return t >= F16 && t <= F64 }

// Space is a state space.
//
// PTX ISA, "State Spaces".
type Space uint8

// The state spaces. SpaceGeneric is what an address without a space means.
const (
	SpaceGeneric Space = iota
	SpaceReg
	SpaceSReg
	SpaceConst
	SpaceGlobal
	SpaceLocal
	SpaceParam
	SpaceShared
	SpaceTex
)

var spaceNames = [...]string{"generic", "reg", "sreg", "const", "global", "local", "param", "shared", "tex"}

// String returns the name without its dot.
func (s Space) String() string { return spaceNames[s] }

func spaceByName(name string) (Space, bool) {
	for s, n := range spaceNames[1:] {
		if n == name {
			return Space(s + 1), true
		}
	}
	return SpaceGeneric, false
}

// Linkage says who sees a symbol.
//
// PTX ISA, "Linking Directives".
type Linkage uint8

// The linkages; Internal is what no directive means.
const (
	Internal Linkage = iota
	Visible
	Extern
	Weak
	Common
)

var linkageNames = [...]string{"", "visible", "extern", "weak", "common"}

// String returns the name without its dot.
func (l Linkage) String() string { return linkageNames[l] }
