// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm/register"
)

// variantAny in a key's round stands for the function that itself reads the
// instruction's rounding and modifiers.
const variantAny ptxir.Round = 255

// threeOperands in a key's mode stands for min and max of three.
const threeOperands ptxir.Mode = 255

// opKey identifies a generated function: an operation, its type, and the
// modifiers that distinguish its functions.
type opKey struct {
	op       ptxir.Op
	typ      ptxir.Type
	from     ptxir.Type
	mode     ptxir.Mode
	round    ptxir.Round
	mod      ptxir.Mod
	cmp      ptxir.Cmp
	space    ptxir.Space
	dst, src register.Class // operations whose registers may be wider than their type
}

// entry is a generated function and the classes of its operands.
type entry struct {
	key opKey
	fn  Func
	dst register.Class
	src []register.Class
}

// executors is the table of generated functions by key, made at first use
// because importing the package should cost nothing.
var executors = sync.OnceValue(func() map[opKey]*entry {
	m := make(map[opKey]*entry, len(generated))
	for i := range generated {
		m[generated[i].key] = &generated[i]
	}
	return m
})

// errNoExecutor says that the PTX is valid, as far as we know, but that this form of
// the instruction is not implemented.
var errNoExecutor = errors.New("this form of the instruction is not supported by the simulated device")

// selection chooses the executor of one instruction.
type selection struct {
	d  *Decoder
	ir *ptxir.Instr
	in *Inst
}

// choosers handle the operations that a key into the table does not describe.
var choosers map[ptxir.Op]func(*selection) error

func init() { // a literal would be an initialisation cycle through decodeInstr
	choosers = map[ptxir.Op]func(*selection) error{
		ptxir.OpMov: (*selection).mov, ptxir.OpPack: (*selection).pack, ptxir.OpUnpack: (*selection).unpack,
		ptxir.OpAnd: (*selection).logic, ptxir.OpOr: (*selection).logic, ptxir.OpXor: (*selection).logic, ptxir.OpNot: (*selection).logic,
		ptxir.OpSetp: (*selection).compare, ptxir.OpSet: (*selection).compare,
		ptxir.OpLop3: (*selection).lop3, ptxir.OpSelp: (*selection).selp,
		ptxir.OpCvt: (*selection).cvt, ptxir.OpCvta: (*selection).cvta, ptxir.OpIsspacep: (*selection).isspacep,
		ptxir.OpLd: (*selection).load, ptxir.OpLdu: (*selection).load, ptxir.OpSt: (*selection).store,
		ptxir.OpAtom: (*selection).atom, ptxir.OpFence: (*selection).fence,
		ptxir.OpAddCC: (*selection).carry, ptxir.OpAddC: (*selection).carry, ptxir.OpSubCC: (*selection).carry,
		ptxir.OpSubC: (*selection).carry, ptxir.OpMadCC: (*selection).carry, ptxir.OpMadC: (*selection).carry,
		ptxir.OpReadSpecial: (*selection).readSpecial,
		ptxir.OpBar:         (*selection).bar, ptxir.OpBarWarp: (*selection).barWarp, ptxir.OpShfl: (*selection).shfl,
		ptxir.OpVote: (*selection).vote, ptxir.OpMatch: (*selection).match, ptxir.OpRedux: (*selection).redux,
		ptxir.OpElect: (*selection).elect, ptxir.OpActivemask: (*selection).activemask,
		ptxir.OpCpAsync: (*selection).cpAsync, ptxir.OpCpAsyncCommit: (*selection).nothing, ptxir.OpCpAsyncWait: (*selection).nothing,
		ptxir.OpCpAsyncMbarrier: (*selection).mbarrierOperation, ptxir.OpMbarInit: (*selection).mbarrierOperation,
		ptxir.OpMbarInval: (*selection).mbarrierOperation, ptxir.OpMbarArrive: (*selection).mbarrierOperation,
		ptxir.OpMbarTest: (*selection).mbarrierOperation, ptxir.OpMbarExpectTx: (*selection).mbarrierOperation,
		ptxir.OpMbarPending: (*selection).mbarrierPending,
		ptxir.OpBulkLoad:    (*selection).bulkCopy, ptxir.OpBulkStore: (*selection).bulkCopy,
		ptxir.OpTex:        (*selection).tex,
		ptxir.OpSurfLoad:   (*selection).surface,
		ptxir.OpSurfStore:  (*selection).surface,
		ptxir.OpTensorLoad: (*selection).bulkCopy, ptxir.OpTensorStore: (*selection).bulkCopy,
		ptxir.OpLdmatrix: (*selection).matrixMove, ptxir.OpStmatrix: (*selection).matrixMove,
		ptxir.OpMovmatrix: (*selection).movmatrix, ptxir.OpMma: (*selection).mma, ptxir.OpCvtPack: (*selection).cvtPack,
		ptxir.OpTrap: (*selection).trap, ptxir.OpBrkpt: (*selection).trap, ptxir.OpNanosleep: (*selection).nanosleep,
		ptxir.OpPmevent: (*selection).nothing, ptxir.OpGridDepControl: (*selection).nothing,
	}
}

// choose sets the executor and the operands.
func (s *selection) choose() error {
	if f := choosers[s.ir.Op]; f != nil {
		return f(s)
	}
	return s.simple(s.key())
}

// simple takes the table's entry for a key.
func (s *selection) simple(key opKey) error {
	e := executors()[key]
	if e == nil {
		return errNoExecutor
	}
	s.in.Fn = e.fn
	if key.op == ptxir.OpFma {
		s.in.Site = s.d.newSite()
	}
	return s.operands(e)
}

// operands resolves the operands as the entry wants them.
func (s *selection) operands(e *entry) error {
	if e.dst != register.ClassNone {
		if len(s.ir.Dst) != 1 {
			return fmt.Errorf("%d destinations, want 1", len(s.ir.Dst))
		}
		if err := s.take(&s.in.D, s.ir.Dst[0], e.dst); err != nil {
			return err
		}
	}
	if len(s.ir.Src) != len(e.src) {
		return fmt.Errorf("%d operands, want %d", len(s.ir.Src), len(e.src))
	}
	for i, place := range []*uint32{&s.in.A, &s.in.B, &s.in.C, &s.in.Members}[:len(e.src)] {
		if err := s.take(place, s.ir.Src[i], e.src[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *selection) take(place *uint32, r ptxir.Reg, class register.Class) (err error) {
	*place, err = s.d.Operand(r, ptxir.Class(class-1))
	return err
}

// class returns a register's class.
func (s *selection) class(r ptxir.Reg) register.Class {
	if int(r) >= len(s.d.Regs) {
		return register.ClassNone
	}
	return register.ClassOf(s.d.Regs[r])
}

// key returns the table key of an ordinary operation.
func (s *selection) key() opKey {
	ir := s.ir
	k := opKey{op: ir.Op, typ: ir.Type, mode: ir.Mode}
	if ir.Type.Float() {
		s.floatKey(&k)
		return k
	}
	k.mod = ir.Mod & (ptxir.ModSat | ptxir.ModRelu | ptxir.ModClamp | ptxir.ModShiftAmt)
	switch ir.Op {
	case ptxir.OpAdd, ptxir.OpSub, ptxir.OpMad, ptxir.OpMul:
		if ir.Type == ptxir.U16x2 || ir.Type == ptxir.S16x2 {
			return k
		}
		if k.mod == 0 && (ir.Mode == ptxir.ModeNone || ir.Mode == ptxir.ModeLo) {
			k.typ = bitsType(ir.Type)
		}
		if k.mode == ptxir.ModeNone && (ir.Op == ptxir.OpMul || ir.Op == ptxir.OpMad) {
			k.mode = ptxir.ModeLo
		}
	case ptxir.OpAnd, ptxir.OpOr, ptxir.OpXor, ptxir.OpNot, ptxir.OpCnot, ptxir.OpNeg, ptxir.OpShl, ptxir.OpSelp,
		ptxir.OpPopc, ptxir.OpClz, ptxir.OpBrev, ptxir.OpBfi, ptxir.OpShf, ptxir.OpPrmt, ptxir.OpBmsk, ptxir.OpFns, ptxir.OpLop3:
		k.typ = bitsType(ir.Type)
	case ptxir.OpSlct:
		k.typ, k.from, k.mod = bitsType(ir.Type), ir.From, ir.Mod&ptxir.ModFtz
	case ptxir.OpDp4a, ptxir.OpDp2a:
		k.from = ir.From
	default:
		k.typ = unsignedType(ir.Type)
	}
	return k
}

// floatKey completes the key of a floating-point operation: the plain form, its
// ftz form where there is one, or the function for every form.
func (s *selection) floatKey(k *opKey) {
	ir := s.ir
	flags := ir.Mod & (ptxir.ModFtz | ptxir.ModSat | ptxir.ModApprox | ptxir.ModFull | ptxir.ModNaN | ptxir.ModXorSignAbs | ptxir.ModRelu | ptxir.ModOOB)
	plain := ir.Round == ptxir.RoundNone || ir.Round == ptxir.RoundRN
	switch ir.Op {
	case ptxir.OpSelp:
		k.typ = bitsType(ir.Type)
		return
	case ptxir.OpSlct:
		k.typ, k.from, k.mod = bitsType(ir.Type), ir.From, ir.Mod&ptxir.ModFtz
		return
	case ptxir.OpCopysign, ptxir.OpTestp:
		return
	case ptxir.OpMad:
		k.op = ptxir.OpFma
	}
	k.mode = ptxir.ModeNone
	if len(ir.Src) == 3 && (ir.Op == ptxir.OpMin || ir.Op == ptxir.OpMax) {
		k.mode, plain = threeOperands, false
	}
	if plain {
		k.mod = flags
		if executors()[*k] != nil {
			return
		}
		k.mod = 0
	}
	k.round = variantAny
}

// bitsType is the untyped type of the same size.
func bitsType(t ptxir.Type) ptxir.Type {
	switch t.Size() {
	case 1:
		return ptxir.B8
	case 2:
		return ptxir.B16
	case 4:
		return ptxir.B32
	case 8:
		return ptxir.B64
	}
	return t
}

// unsignedType takes untyped bits as unsigned.
func unsignedType(t ptxir.Type) ptxir.Type {
	switch t {
	case ptxir.B8:
		return ptxir.U8
	case ptxir.B16:
		return ptxir.U16
	case ptxir.B32:
		return ptxir.U32
	case ptxir.B64:
		return ptxir.U64
	}
	return t
}

// want checks the counts of destinations and sources.
func (s *selection) want(dst, src int) error {
	if len(s.ir.Dst) < dst || len(s.ir.Src) != src {
		return fmt.Errorf("%d destinations and %d operands, want %d and %d", len(s.ir.Dst), len(s.ir.Src), dst, src)
	}
	return nil
}

// optional resolves a register that may be absent.
func (s *selection) optional(place *uint32, regs []ptxir.Reg, i int, class register.Class) error {
	if i >= len(regs) || regs[i] == ptxir.NoReg {
		return nil
	}
	return s.take(place, regs[i], class)
}
