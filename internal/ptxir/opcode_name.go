// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

// opNames is what messages and listings call each operation.
var opNames = map[Op]string{
	OpInvalid:         "invalid",
	OpAdd:             "add",
	OpSub:             "sub",
	OpMul:             "mul",
	OpMad:             "mad",
	OpFma:             "fma",
	OpMul24:           "mul24",
	OpMad24:           "mad24",
	OpAddCC:           "add.cc",
	OpAddC:            "addc",
	OpSubCC:           "sub.cc",
	OpSubC:            "subc",
	OpMadCC:           "mad.cc",
	OpMadC:            "madc",
	OpDiv:             "div",
	OpRem:             "rem",
	OpAbs:             "abs",
	OpNeg:             "neg",
	OpMin:             "min",
	OpMax:             "max",
	OpSad:             "sad",
	OpRcp:             "rcp",
	OpSqrt:            "sqrt",
	OpRsqrt:           "rsqrt",
	OpSin:             "sin",
	OpCos:             "cos",
	OpLg2:             "lg2",
	OpEx2:             "ex2",
	OpTanh:            "tanh",
	OpCopysign:        "copysign",
	OpTestp:           "testp",
	OpDp4a:            "dp4a",
	OpDp2a:            "dp2a",
	OpAnd:             "and",
	OpOr:              "or",
	OpXor:             "xor",
	OpNot:             "not",
	OpCnot:            "cnot",
	OpShl:             "shl",
	OpShr:             "shr",
	OpShf:             "shf",
	OpPrmt:            "prmt",
	OpBfe:             "bfe",
	OpBfi:             "bfi",
	OpBfind:           "bfind",
	OpBmsk:            "bmsk",
	OpBrev:            "brev",
	OpClz:             "clz",
	OpPopc:            "popc",
	OpFns:             "fns",
	OpLop3:            "lop3",
	OpSzext:           "szext",
	OpMov:             "mov",
	OpPack:            "mov (pack)",
	OpUnpack:          "mov (unpack)",
	OpCvt:             "cvt",
	OpCvtPack:         "cvt.pack",
	OpCvta:            "cvta",
	OpIsspacep:        "isspacep",
	OpSelp:            "selp",
	OpSlct:            "slct",
	OpSet:             "set",
	OpSetp:            "setp",
	OpReadSpecial:     "mov from special register",
	OpNop:             "nop",
	OpLd:              "ld",
	OpSt:              "st",
	OpLdu:             "ldu",
	OpAtom:            "atom",
	OpFence:           "fence",
	OpPrefetch:        "prefetch",
	OpCpAsync:         "cp.async",
	OpCpAsyncCommit:   "cp.async.commit_group",
	OpCpAsyncWait:     "cp.async.wait_group",
	OpCpAsyncMbarrier: "cp.async.mbarrier.arrive",
	OpMbarInit:        "mbarrier.init",
	OpMbarInval:       "mbarrier.inval",
	OpMbarArrive:      "mbarrier.arrive",
	OpMbarTest:        "mbarrier.test_wait",
	OpMbarPending:     "mbarrier.pending_count",
	OpMbarExpectTx:    "mbarrier.expect_tx",
	OpBulkLoad:        "cp.async.bulk",
	OpBulkStore:       "cp.async.bulk",
	OpTensorLoad:      "cp.async.bulk.tensor",
	OpTensorStore:     "cp.async.bulk.tensor",
	OpTex:             "tex",
	OpSurfLoad:        "suld",
	OpSurfStore:       "sust",
	OpBar:             "bar",
	OpBarWarp:         "bar.warp.sync",
	OpShfl:            "shfl.sync",
	OpVote:            "vote.sync",
	OpMatch:           "match.sync",
	OpRedux:           "redux.sync",
	OpElect:           "elect.sync",
	OpActivemask:      "activemask",
	OpLdmatrix:        "ldmatrix",
	OpStmatrix:        "stmatrix",
	OpMovmatrix:       "movmatrix",
	OpMma:             "mma.sync",
	OpWmmaLoad:        "wmma.load",
	OpWmmaStore:       "wmma.store",
	OpWmmaMma:         "wmma.mma",
	OpTrap:            "trap",
	OpBrkpt:           "brkpt",
	OpNanosleep:       "nanosleep",
	OpPmevent:         "pmevent",
	OpGridDepControl:  "griddepcontrol",
	OpVideo:           "video",
}

// String returns the PTX mnemonic of the operation's family.
func (o Op) String() string {
	if s, ok := opNames[o]; ok {
		return s
	}
	return "op?"
}

// Ops returns every operation, for tests that must not miss one.
func Ops() []Op {
	ops := make([]Op, 0, len(opNames))
	for o := OpInvalid + 1; o < opEnd; o++ {
		if _, ok := opNames[o]; ok {
			ops = append(ops, o)
		}
	}
	return ops
}
