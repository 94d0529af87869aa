// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

// Op is an operation: an instruction family of the PTX ISA, or one of the
// shapes that a family takes. Types and modifiers are fields of Instr.
type Op uint16

// Integer and floating-point arithmetic. Unless said otherwise Dst is d and
// Src is the PTX operands in their order. A carry register CC.CF is a
// ClassPred register that lowering allocates, one for each function.
const (
	OpInvalid Op = iota
	OpAdd        // all number types; Round, ModFtz, ModSat
	OpSub
	OpMul      // Mode: ModeLo, ModeHi, ModeWide for integers
	OpMad      // integers; Mode as OpMul. mad.f32/f64 is OpFma
	OpFma      // f16, f32, f64 and packed; Round, ModFtz, ModSat, ModRelu
	OpMul24    // Mode: ModeLo, ModeHi
	OpMad24    // Mode: ModeLo, ModeHi; ModSat
	OpAddCC    // Dst d, carry out
	OpAddC     // Dst d [, carry out]; Src a, b, carry in
	OpSubCC    // Dst d, borrow out
	OpSubC     // Dst d [, borrow out]; Src a, b, borrow in
	OpMadCC    // Dst d, carry out; Mode: ModeLo, ModeHi
	OpMadC     // Dst d [, carry out]; Src a, b, c, carry in
	OpDiv      // integers; floats with Round, or ModApprox, or ModFull
	OpRem      //
	OpAbs      // ModFtz
	OpNeg      // ModFtz
	OpMin      // ModFtz, ModNaN, ModXorSignAbs, ModRelu (s32 too); two or three sources
	OpMax      // as OpMin
	OpSad      //
	OpRcp      // Round, or ModApprox; ModFtz
	OpSqrt     // Round, or ModApprox; ModFtz
	OpRsqrt    // approximate; ModFtz
	OpSin      // approximate; ModFtz
	OpCos      // approximate; ModFtz
	OpLg2      // approximate; ModFtz
	OpEx2      // approximate; ModFtz; f16 and bf16 too
	OpTanh     // approximate; f16 and bf16 too
	OpCopysign // Src a, b: the sign of a, the magnitude of b, as in PTX
	OpTestp    // Dst p; Mode: ModeFinite … ModeSubnormal
	OpDp4a     // From is b's type
	OpDp2a     // From is b's type; Mode: ModeLo, ModeHi
)

// Bits.
const (
	OpAnd   Op = iota + 100 // also predicates (Type Pred), as are or, xor and not
	OpOr                    //
	OpXor                   //
	OpNot                   //
	OpCnot                  //
	OpShl                   // shift count is a Class32 register, clamped
	OpShr                   // arithmetic for s types
	OpShf                   // Src a, b, c; Mode: ModeShfL…; ModClamp or wrap
	OpPrmt                  // Mode: ModePrmtF4E … or none
	OpBfe                   //
	OpBfi                   // Src a, b, pos, len
	OpBfind                 // ModShiftAmt
	OpBmsk                  // ModClamp or wrap
	OpBrev                  //
	OpClz                   // Dst is Class32
	OpPopc                  // Dst is Class32
	OpFns                   //
	OpLop3                  // Imm: the lut; Dst d [, p] with Bool and Src a, b, c [, q]
	OpSzext                 // ModClamp or wrap
)

// Data movement and comparison.
const (
	OpMov         Op = iota + 200 // register to register, Pred included
	OpPack                        // Type is d's; Src are the elements, low first
	OpUnpack                      // Type is a's; Dst are the elements, NoReg for "_"
	OpCvt                         // Type from From; Round, ModFtz, ModSat, ModRelu; packed forms have Src a, b (a is the high half)
	OpCvtPack                     // cvt.pack: Src a, b [, c]
	OpCvta                        // to generic from Space; ModTo: from generic to Space. Type u32 or u64
	OpIsspacep                    // Dst p; Space
	OpSelp                        // Src a, b, p
	OpSlct                        // Src a, b, c; From: c's type
	OpSet                         // Type: d; From: a and b; Cmp; with Bool: Src a, b, c
	OpSetp                        // Dst p [, q]; From and Type: a's type; Cmp; with Bool: Src a, b, c. Packed types always have both
	OpReadSpecial                 // Imm: SpecialID of a register that changes (clock …)
	OpNop                         // what has no effect here: prefetch, fences within a warp, pragma-like instructions
)

// Memory. Src[0] is the address register (Class32 or Class64), Imm its offset,
// Space the state space (SpaceGeneric without one). A vector has as many Dst
// (or further Src) as elements. Registers may be wider than Type: loads extend
// (sign for s types), stores take the low bits.
const (
	OpLd              Op = iota + 300 // Dst elements; ModVolatile, ModAcquire
	OpSt                              // Src address, elements; ModRelease
	OpLdu                             // as OpLd
	OpAtom                            // Dst [d]; Src address, b [, c]; Atom. NoReg or no Dst is red. All elements of b, then of c; B128 is two
	OpFence                           // membar, fence
	OpPrefetch                        // nothing happens
	OpCpAsync                         // Src dst shared address, src global address [, src size]; Imm: bytes; Mode none. [, Guard-like ignore-src predicate last with ModIgnoreSrc]
	OpCpAsyncCommit                   //
	OpCpAsyncWait                     // Imm: groups that may stay pending, -1: wait_all
	OpCpAsyncMbarrier                 // cp.async.mbarrier.arrive; Src address; ModNoInc
	OpMbarInit                        // Src address, count
	OpMbarInval                       // Src address
	OpMbarArrive                      // Dst [state]; Src address [, count]; ModNoComplete, ModDrop, ModExpectTx
	OpMbarTest                        // Dst p; Src address, state or parity; ModParity; ModTry
	OpMbarPending                     // Dst count; Src state
	OpMbarExpectTx                    // Src address, bytes
	OpBulkLoad                        // Src shared address, global address, bytes, mbarrier
	OpBulkStore                       // Src shared address, global address, bytes
	OpTensorLoad                      // Src shared address, address of the tensor map, mbarrier, coordinates
	OpTex                             // Dst 4 channels; Src texture, coordinates, level; From: their type; Imm: Geometry
	OpSurfLoad                        // Dst elements; Src surface, coordinates; Imm: Geometry
	OpSurfStore                       // Src surface, coordinates, elements; Imm: Geometry
	OpTensorStore                     // Src shared address, address of the tensor map, coordinates
)

// Warp and block. All but those marked "local" are convergent.
const (
	OpBar            Op = iota + 400 // Src barrier [, threads]; Mode: ModeSync, ModeArrive, ModeRedPopc, ModeRedAnd, ModeRedOr; red: Dst d; Src barrier, threads or NoReg, p
	OpBarWarp                        // bar.warp.sync; Src membermask
	OpShfl                           // Dst d [, p]; Src a, b, c, membermask; Mode: ModeUp, ModeDown, ModeBfly, ModeIdx
	OpVote                           // Dst p or b32; Src p, membermask; Mode: ModeAll, ModeAny, ModeUni, ModeBallot
	OpMatch                          // Dst d [, p]; Src a, membermask; Mode: ModeAny, ModeAll; Type b32 or b64
	OpRedux                          // Src a, membermask; Atom: add, min, max, and, or, xor
	OpElect                          // Dst d [, p]; Src membermask
	OpActivemask                     // local
	OpLdmatrix                       // Dst elements; Src address; Imm: number of 8 rows; ModTrans; From: B16 or B8, of which Mode: ModePacked4, ModePacked6
	OpStmatrix                       // Src address, elements; Imm; ModTrans; From: B16 or B8
	OpMovmatrix                      // Dst d; Src a
	OpMma                            // Dst d…; Src a…, b…, c… [, metadata]; Mma describes shape and types; Round for f64
	OpWmmaLoad                       //
	OpWmmaStore                      //
	OpWmmaMma                        //
	OpTrap                           // local
	OpBrkpt                          // local
	OpNanosleep                      // local
	OpPmevent                        // local
	OpGridDepControl                 // local; nothing happens
	OpVideo                          // local; scalar video instructions, unsupported so far
	opEnd
)

// Convergent reports whether the operation needs other lanes to be at the same
// place, so that lowering must make it a terminator.
func (o Op) Convergent() bool {
	switch o {
	case OpActivemask, OpTrap, OpBrkpt, OpNanosleep, OpPmevent, OpGridDepControl, OpVideo:
		return false
	}
	return o >= OpBar
}
