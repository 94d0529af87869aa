// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import "strings"

// word is what a modifier may mean. Some mean different things to different
// instructions, such as "and"; each reads the field that concerns it.
type word struct {
	mod      Mod
	round    Round
	cmp      Cmp
	bool     BoolOp
	atom     AtomOp
	mode     Mode
	space    Space
	hasSpace bool
	vector   int
}

var words = map[string]word{
	"rn": {round: RoundRN}, "rz": {round: RoundRZ}, "rm": {round: RoundRM}, "rp": {round: RoundRP},
	"rni": {round: RoundRNI}, "rzi": {round: RoundRZI}, "rmi": {round: RoundRMI}, "rpi": {round: RoundRPI},
	"rna": {round: RoundRNA},

	"ftz": {mod: ModFtz}, "sat": {mod: ModSat}, "satfinite": {mod: ModSatFinite},
	"approx": {mod: ModApprox}, "full": {mod: ModFull}, "NaN": {mod: ModNaN},
	"xorsign": {mod: ModXorSignAbs}, "relu": {mod: ModRelu}, "oob": {mod: ModOOB},
	"clamp": {mod: ModClamp}, "shiftamt": {mod: ModShiftAmt}, "to": {mod: ModTo},
	"volatile": {mod: ModVolatile}, "mmio": {mod: ModVolatile}, "relaxed": {mod: ModVolatile},
	"acquire": {mod: ModAcquire}, "release": {mod: ModRelease}, "acq_rel": {mod: ModAcquire | ModRelease},
	"trans": {mod: ModTrans}, "noinc": {mod: ModNoInc}, "noComplete": {mod: ModNoComplete},
	"expect_tx": {mod: ModExpectTx}, "parity": {mod: ModParity},

	"eq": {cmp: CmpEq}, "ne": {cmp: CmpNe}, "lt": {cmp: CmpLt}, "le": {cmp: CmpLe}, "gt": {cmp: CmpGt}, "ge": {cmp: CmpGe},
	"lo": {cmp: CmpLo, mode: ModeLo}, "ls": {cmp: CmpLs}, "hi": {cmp: CmpHi, mode: ModeHi}, "hs": {cmp: CmpHs},
	"equ": {cmp: CmpEqu}, "neu": {cmp: CmpNeu}, "ltu": {cmp: CmpLtu}, "leu": {cmp: CmpLeu}, "gtu": {cmp: CmpGtu}, "geu": {cmp: CmpGeu},
	"num": {cmp: CmpNum}, "nan": {cmp: CmpNan},

	"and": {bool: BoolAnd, atom: AtomAnd, mode: ModeRedAnd},
	"or":  {bool: BoolOr, atom: AtomOr, mode: ModeRedOr},
	"xor": {bool: BoolXor, atom: AtomXor},

	"add": {atom: AtomAdd}, "min": {atom: AtomMin}, "max": {atom: AtomMax}, "inc": {atom: AtomInc}, "dec": {atom: AtomDec},
	"exch": {atom: AtomExch}, "cas": {atom: AtomCas},

	"wide": {mode: ModeWide}, "l": {mode: ModeShfL}, "r": {mode: ModeShfR},
	"f4e": {mode: ModePrmtF4E}, "b4e": {mode: ModePrmtB4E}, "rc8": {mode: ModePrmtRC8},
	"ecl": {mode: ModePrmtECL}, "ecr": {mode: ModePrmtECR}, "rc16": {mode: ModePrmtRC16},
	"finite": {mode: ModeFinite}, "infinite": {mode: ModeInfinite}, "number": {mode: ModeNumber},
	"notanumber": {mode: ModeNotANumber}, "normal": {mode: ModeNormal}, "subnormal": {mode: ModeSubnormal},
	"popc": {mode: ModeRedPopc}, "up": {mode: ModeUp}, "down": {mode: ModeDown}, "bfly": {mode: ModeBfly}, "idx": {mode: ModeIdx},
	"all": {mode: ModeAll}, "any": {mode: ModeAny}, "uni": {mode: ModeUni}, "ballot": {mode: ModeBallot},

	"global": {space: SpaceGlobal, hasSpace: true}, "const": {space: SpaceConst, hasSpace: true},
	"local": {space: SpaceLocal, hasSpace: true}, "shared": {space: SpaceShared, hasSpace: true},
	// A cluster is always one block here, so its window is the block's.
	"shared::cta": {space: SpaceShared, hasSpace: true}, "shared::cluster": {space: SpaceShared, hasSpace: true},
	"param": {space: SpaceParam, hasSpace: true}, "param::entry": {space: SpaceParam, hasSpace: true},
	"param::func": {space: SpaceLocal, hasSpace: true},

	"v2": {vector: 2}, "v4": {vector: 4}, "v8": {vector: 8},
}

// otherWords are modifiers of the PTX ISA that words does not hold: a modifier
// that is in neither list is a slip of the pen, not a missing feature.
var otherWords = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`
		abs aligned all arrive b1024 bulk ca cg cs cv lu wb wt nc cc cta cluster gpu sys gl
		sc weak unified sync async commit cp reduce wait wait_group wait_all commit_group row col
		m8n8 m8n16 m16n8 m16n16 m8n8k4 m8n8k16 m8n8k32 m8n8k128 m16n8k4 m16n8k8 m16n8k16 m16n8k32 m16n8k64
		m16n8k128 m16n8k256 m16n16k16 m32n8k16 m8n32k16 m16n16k8 x1 x2 x4 x8 x16 x32 x64 x128
		a b c d e2m1 e2m1x2 e3m2 e3m2x2 e2m3 e2m3x2 e4m3x4 e5m2x4 ue8m0 ue8m0x2 rs
		geom trap 1d 2d 3d a1d a2d cube acube tile im2col level grad base tid tensor tensormap proxy alias
		init inval test_wait try_wait pending_count expect_tx complete_tx drop noftz red popc arrive_drop
		wrap uni mask launch_dependents po shr7 shr15 L1 L2 sp block_scale scale_vec::1X scale_vec::2X scale_vec::4X kind
		s2 u2 b8x16 b4x16_p64 b6x16_p32 v2 v4 v8 vec acc::f32 acc::f16 sink primary one zero ftz mbarrier multicast
		4d 5d bulk_group read
	`) {
		m[w] = true
	}
	return m
}()

func knownWord(w string) bool {
	_, ok := words[w]
	return ok || otherWords[w] || strings.Contains(w, "::")
}
