// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

// Type is a PTX fundamental type or a packed or alternate floating-point type.
type Type uint8

// The types. Their spelling in PTX is String.
const (
	TypeNone Type = iota
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
	F32
	F64
	F16x2
	BF16
	BF16x2
	TF32
	E4M3x2
	E5M2x2
	U16x2
	S16x2
	F32x2
	S2
	U2
	S4
	U4
	B1
	E4M3
	E5M2
	typeCount
)

var typeInfos = [typeCount]struct {
	name string
	size int // bytes
}{
	TypeNone: {"none", 0}, Pred: {"pred", 0},
	B8: {"b8", 1}, B16: {"b16", 2}, B32: {"b32", 4}, B64: {"b64", 8}, B128: {"b128", 16},
	U8: {"u8", 1}, U16: {"u16", 2}, U32: {"u32", 4}, U64: {"u64", 8},
	S8: {"s8", 1}, S16: {"s16", 2}, S32: {"s32", 4}, S64: {"s64", 8},
	F16: {"f16", 2}, F32: {"f32", 4}, F64: {"f64", 8}, F16x2: {"f16x2", 4},
	BF16: {"bf16", 2}, BF16x2: {"bf16x2", 4}, TF32: {"tf32", 4},
	E4M3x2: {"e4m3x2", 2}, E5M2x2: {"e5m2x2", 2},
	U16x2: {"u16x2", 4}, S16x2: {"s16x2", 4}, F32x2: {"f32x2", 8},
	S2: {"s2", 0}, U2: {"u2", 0}, S4: {"s4", 0}, U4: {"u4", 0}, B1: {"b1", 0}, E4M3: {"e4m3", 1}, E5M2: {"e5m2", 1},
}

// String returns the type as PTX spells it, without the dot.
func (t Type) String() string {
	if t < typeCount {
		return typeInfos[t].name
	}
	return "type?"
}

// Size returns the type's size in bytes; 0 for predicates and sub-byte types.
func (t Type) Size() int { return typeInfos[t].size }

// Bits returns the type's size in bits; 0 for predicates.
func (t Type) Bits() int {
	switch t {
	case S2, U2:
		return 2
	case S4, U4:
		return 4
	case B1:
		return 1
	}
	return 8 * t.Size()
}

// Signed reports whether t is a signed integer.
func (t Type) Signed() bool { return t >= S8 && t <= S64 || t == S16x2 || t == S2 || t == S4 }

// Float reports whether t is a floating-point type, packed ones included.
func (t Type) Float() bool { return t >= F16 && t <= E5M2x2 || t == F32x2 || t == E4M3 || t == E5M2 }

// Class returns the register class that holds one value of t. B128 has none.
func (t Type) Class() Class {
	switch t.Size() {
	case 0:
		return ClassPred
	case 1, 2:
		return Class16
	case 4:
		return Class32
	}
	return Class64
}

// Mod is a set of flags of an instruction.
type Mod uint32

// The flags. Each is named after the PTX modifier.
const (
	ModFtz Mod = 1 << iota
	ModSat
	ModSatFinite
	ModApprox
	ModFull
	ModNaN
	ModXorSignAbs
	ModRelu
	ModClamp    // shf, bmsk, szext: clamp; absent is wrap
	ModShiftAmt // bfind
	ModTo       // cvta.to
	ModVolatile
	ModAcquire
	ModRelease
	ModTrans
	ModIgnoreSrc
	ModNoInc
	ModNoComplete
	ModDrop
	ModExpectTx
	ModParity
	ModTry
	ModOOB     // fma.oob
	ModAligned // bar and barrier.aligned: by all lanes of a warp
	ModUnit    // reserved for lowering's own use
)

// Round is a rounding modifier.
type Round uint8

// The rounding modifiers: to the nearest even, zero, minus and plus infinity,
// the same to an integral value, and to the nearest with ties away from zero.
const (
	RoundNone Round = iota
	RoundRN
	RoundRZ
	RoundRM
	RoundRP
	RoundRNI
	RoundRZI
	RoundRMI
	RoundRPI
	RoundRNA
)

// Cmp is a comparison.
type Cmp uint8

// The comparisons. Lo, Ls, Hi, Hs are unsigned; the U forms are true for NaN.
const (
	CmpNone Cmp = iota
	CmpEq
	CmpNe
	CmpLt
	CmpLe
	CmpGt
	CmpGe
	CmpLo
	CmpLs
	CmpHi
	CmpHs
	CmpEqu
	CmpNeu
	CmpLtu
	CmpLeu
	CmpGtu
	CmpGeu
	CmpNum
	CmpNan
)

// BoolOp combines a comparison with a predicate.
type BoolOp uint8

// The combinations.
const (
	BoolNone BoolOp = iota
	BoolAnd
	BoolOr
	BoolXor
)

// Space is a state space.
type Space uint8

// The state spaces. Param is the kernel's parameter block; parameters of
// device functions are Local.
const (
	SpaceGeneric Space = iota
	SpaceGlobal
	SpaceShared
	SpaceLocal
	SpaceConst
	SpaceParam
)

var spaceNames = [...]string{"generic", "global", "shared", "local", "const", "param"}

// String returns the space as PTX spells it, without the dot.
func (s Space) String() string { return spaceNames[s] }

// AtomOp is the operation of atom, red and redux.
type AtomOp uint8

// The atomic operations.
const (
	AtomNone AtomOp = iota
	AtomAdd
	AtomMin
	AtomMax
	AtomInc
	AtomDec
	AtomAnd
	AtomOr
	AtomXor
	AtomExch
	AtomCas
)

// Mode is a variant of an operation; which ones apply is said at the Op.
type Mode uint8

// The variants.
const (
	ModeNone Mode = iota
	ModeLo
	ModeHi
	ModeWide
	ModeShfL
	ModeShfR
	ModePrmtF4E
	ModePrmtB4E
	ModePrmtRC8
	ModePrmtECL
	ModePrmtECR
	ModePrmtRC16
	ModeFinite
	ModeInfinite
	ModeNumber
	ModeNotANumber
	ModeNormal
	ModeSubnormal
	ModeSync
	ModeArrive
	ModeRedPopc
	ModeRedAnd
	ModeRedOr
	ModeUp
	ModeDown
	ModeBfly
	ModeIdx
	ModeAll
	ModeAny
	ModeUni
	ModeBallot
	ModePacked4
	ModePacked6
)

// SpecialID names a special register.
type SpecialID uint8

// The special registers. X, Y and Z follow each other.
const (
	SpecialNone SpecialID = iota
	SpecialTidX
	SpecialTidY
	SpecialTidZ
	SpecialNtidX
	SpecialNtidY
	SpecialNtidZ
	SpecialCtaidX
	SpecialCtaidY
	SpecialCtaidZ
	SpecialNctaidX
	SpecialNctaidY
	SpecialNctaidZ
	SpecialLaneid
	SpecialWarpid
	SpecialNwarpid
	SpecialSmid
	SpecialNsmid
	SpecialGridid // Class64
	SpecialLanemaskEq
	SpecialLanemaskLe
	SpecialLanemaskLt
	SpecialLanemaskGe
	SpecialLanemaskGt
	SpecialWarpSize
	SpecialDynamicSmemSize
	SpecialTotalSmemSize
	SpecialAggrSmemSize
	SpecialEnvreg            // all but 1 and 2: 0
	SpecialClusterOne        // %cluster_nctaid.*, %nclusterid-like registers that are 1 without clusters
	SpecialClusterZero       // %cluster_ctaid.*, %cluster_ctarank: 0 without clusters
	SpecialIsExplicitCluster // Pred; false
	SpecialClock             // changes: OpReadSpecial
	SpecialClockHi           // changes
	SpecialClock64           // changes; Class64
	SpecialGlobaltimer       // changes; Class64
	SpecialGlobaltimerLo
	SpecialGlobaltimerHi
	SpecialReservedSmemBegin // and %reserved_smem_offset_0 and _1
	SpecialReservedSmemEnd
	SpecialReservedSmemCap
	SpecialEnvreg1 // with the next: where a cooperative grid's workspace is; the high half
	SpecialEnvreg2
	SpecialGraphExec // Class64; 0 outside of graphs that kernels launch
)
