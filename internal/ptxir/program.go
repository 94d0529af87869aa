// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package ptxir is the checked and lowered form of a PTX module: functions as
// basic blocks of flat instructions whose operands are all registers.
//
// Lowering (this package, from the tree of package ptx) fills these types;
// package ptxvm decodes and runs them. Nothing here depends on how the
// executor lays out registers or memory.
package ptxir

// A Module is one lowered PTX module. It is immutable once lowered.
type Module struct {
	Name    string    // what messages call it: a file name or "module"
	Version [2]int    // .version, major and minor
	Target  string    // .target's first word, such as "sm_75"
	Files   []string  // .file names by their number; index 0 is unused
	Vars    []*Var    // module-scope .global, .const and .shared variables
	Funcs   []*Func   // device functions (.func) with a body
	Kernels []*Kernel // .entry functions, in order of appearance
}

// A Kernel is a function that the host can launch.
//
// Limits of zero are not given in the PTX.
type Kernel struct {
	Func
	Args       []Param   // parameter layout as the host must pack it
	ArgBytes   uint32    // size of the packed parameter block
	MaxThreads [3]uint32 // .maxntid
	ReqThreads [3]uint32 // .reqntid
	MinBlocks  uint32    // .minnctapersm
	MaxRegs    uint32    // .maxnreg
}

// A Param is one kernel parameter in the packed parameter block.
type Param struct {
	Name   string
	Type   Type // element type; B8 for structs and arrays
	Offset uint32
	Size   uint32 // bytes
	Align  uint32
	// Pointer says that the PTX marks the parameter with .ptr.
	Pointer bool
}

// A Func is a lowered function. Blocks are numbered in reverse post-order with
// loop exits last: the executor runs the lowest-numbered block first, and the
// numbering is what makes diverged lanes meet again. Blocks[0] is the entry.
type Func struct {
	Name     string
	Params   []*Var    // .func: incoming parameters, Space Local; .entry: Space Param
	Rets     []*Var    // .func: return parameters, Space Local
	Vars     []*Var    // function-scope .local and .shared, and call-scope .param (as Local)
	Regs     []Class   // class of each register; a Reg is an index into it
	Names    []string  // what the PTX calls each register; "" for those that lowering made
	Consts   []Const   // registers that hold a constant for the whole call
	Specials []Special // registers that hold a special register for the whole block
	Blocks   []Block
	Pos      Pos

	// Err is why this function cannot run (an unsupported instruction in it):
	// loading the module succeeds, and asking for a kernel that contains or
	// calls it returns Err. It is nil for a runnable function.
	Err error
}

// A Var is a variable of any state space. The executor gives it its place.
type Var struct {
	Name   string
	Space  Space
	Type   Type
	Align  uint32
	Size   uint64 // bytes; 0 for .extern .shared x[] (the dynamic shared memory)
	Extern bool
	// Managed says that the host accesses it as well: .attribute(.managed).
	Managed bool
	Init    []byte  // global and const: leading bytes, the rest is zero
	Relocs  []Reloc // addresses stored into Init at load
	// Offset of a kernel parameter in the packed block. Other spaces: unused.
	Offset uint32
	Pos    Pos
}

// A Reloc stores an address into an initialiser.
type Reloc struct {
	Offset uint64 // where in Init
	Size   uint8  // bytes stored: 4 or 8, or 1 of the address
	Shift  uint8  // in bits, of the address, before its lowest bytes are stored
	Var    *Var   // nil with Func set: a function's address
	Func   *Func
	Addend int64
	// Generic says the address is converted to a generic one (generic(x)).
	Generic bool
}

// Class is the kind of storage of a register.
type Class uint8

// The register classes. Registers of 8 and 16 bits are Class16 and hold their
// value zero-extended; what lies above the named bits is never seen by PTX.
// A .b128 register is two consecutive Class64 registers, low half first.
const (
	ClassPred Class = iota
	Class16
	Class32
	Class64
)

// Reg is a register of a function: an index into Func.Regs.
type Reg uint32

// NoReg stands where no register is: the sink "_", or an absent operand.
const NoReg = ^Reg(0)

// A Const is a register filled before the function starts. Lowering makes one
// for each distinct immediate and symbol address, so that an operand is always
// a register.
type Const struct {
	Reg  Reg
	Bits uint64 // value, or what is added to the address of Var
	// Var, if set: the register holds Var's address in its own state space
	// (an offset for shared and local, the parameter block's offset for param)
	// plus Bits. Generic converts that to a generic address.
	Var     *Var
	Func    *Func // if set: the function's address, for indirect calls
	Generic bool
}

// A Special is a register filled with the value of a special register when a
// block starts. Registers whose value changes while the kernel runs (clock,
// globaltimer) are read by OpReadSpecial instead.
type Special struct {
	Reg Reg
	ID  SpecialID
}

// A Block is a basic block.
//
// Convergent operations (Op.Convergent) and calls never stand in Instrs: they
// end their block, as Term. A guarded one is branched around by lowering.
type Block struct {
	Instrs []Instr
	Term   Term
	// Count is how many PTX instructions one pass through the block stands for,
	// terminator included, instructions that lowering dropped or added left
	// out. The executor's instruction counts are sums of it.
	Count int
}

// An Instr is one instruction. Which fields matter depends on Op; each Op's
// comment says what Dst and Src hold.
type Instr struct {
	Op   Op
	Type Type // the instruction's type; the destination type of cvt and set
	From Type // the source type of cvt, set, slct (its .f32/.s32), and of mixed-type operations
	Mod  Mod  // flags
	Dst  []Reg
	Src  []Reg

	Round Round
	Cmp   Cmp
	Bool  BoolOp
	Space Space
	Atom  AtomOp
	Mode  Mode  // variant of the operation: shfl.up, mul.wide, vote.any …
	Imm   int64 // address offset of memory operations, lut of lop3, special register …

	Mma *Mma // OpMma and OpWmma…

	// Guard, unless NoReg, is the predicate that must be true (false with
	// GuardNot) in a lane for the instruction to act there.
	Guard    Reg
	GuardNot bool

	Pos Pos
	// Text is the instruction as written, for messages.
	Text string
}

// Mma is the shape and the types of a matrix multiply-and-accumulate.
type Mma struct {
	M, N, K    int
	D, A, B, C Type
	ColA, ColB bool   // column-major; mma.sync is row.col unless it says otherwise
	Fragment   byte   // wmma load and store: 'a', 'b', 'c' or 'd'
	Op         BoolOp // b1: and or xor with popc
	// Sparse says that A has only the elements that are not zero, that Src ends
	// with the metadata, and that the lanes Selector give it.
	Sparse   bool
	Selector int
}

// TermKind says how a block ends.
type TermKind uint8

// How blocks end.
const (
	TermJump   TermKind = iota // to Targets[0]
	TermBranch                 // lanes with Pred (negated by Not) to Targets[0], others to Targets[1]
	TermSwitch                 // brx.idx: lane goes to Targets[Index]; out of range is a fault
	TermRet                    // return; from a kernel it is TermExit
	TermExit                   // the lane ends
	TermCall                   // Call, then Targets[0]
	TermSync                   // Instr (a convergent operation), then Targets[0]
)

// A Term ends a block.
type Term struct {
	Kind    TermKind
	Pred    Reg  // TermBranch
	Not     bool // TermBranch
	Index   Reg  // TermSwitch, Class32
	Targets []int
	Call    *Call
	Instr   *Instr
	Pos     Pos
	Text    string
}

// A Call is a direct, indirect or built-in call. Arguments and results travel
// in the caller's call-scope .param variables, which lowering made local
// variables; the executor copies the bytes between the two frames.
type Call struct {
	Func    *Func   // direct
	Builtin Builtin // or one of the functions that the driver supplies
	Target  Reg     // or indirect: Class64 register with a function's address
	// Callees are the functions an indirect call may reach, if .calltargets
	// names them; nil allows every function with a matching signature.
	Callees  []*Func
	Args     []*Var // local variables of the caller
	Rets     []*Var
	NoReturn bool
}

// Builtin is a device function that the driver supplies.
type Builtin uint8

// The driver's device functions.
const (
	BuiltinNone           Builtin = iota
	BuiltinVprintf                // (.b64 format, .b64 arguments) -> .b32
	BuiltinAssertFail             // (.b64 message, .b64 file, .b32 line, .b64 function, .b64 char size)
	BuiltinMalloc                 // (.b64) -> .b64
	BuiltinAlignedMalloc          // (.b64 size, .b64 alignment) -> .b64
	BuiltinFree                   // (.b64)
	BuiltinSetConditional         // (.b64 handle, .b32 value)
)

// Pos is where something stands: its line in the PTX text, and the line of the
// source that .loc names (File 0: none).
type Pos struct {
	Line       int
	File       int // index into Module.Files
	SourceLine int
}
