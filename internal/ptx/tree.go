// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

// Module is one PTX text.
type Module struct {
	Major, Minor int
	// Target is what follows .target: the architecture first, then options.
	Target []string
	// AddressSize is in bits; 0 when the text does not say.
	AddressSize int
	// Files maps the numbers that .loc uses to names.
	Files map[int]string
	// Items are variables, functions, aliases and pragmas in textual order.
	Items []Item
	// Source is the text that was parsed; it is empty in a tree made by hand.
	Source string
}

// Item is something at module level: *Variable, *Function, *Alias or *Pragma.
type Item interface{ item() }

// Variable is a declaration of one name: a register or range of registers, a
// parameter, or a variable in memory.
type Variable struct {
	Line    int
	Linkage Linkage
	Space   Space
	// Align is 0 when it is not given.
	Align uint32
	// Vector is 0 for scalars, else 2, 4 or 8.
	Vector uint8
	Type   Type
	Name   string
	// Range makes a register declaration stand for Name0 ... Name(Range-1).
	Range uint32
	// Dims are the array's dimensions in elements, empty for scalars. The first
	// is 0 for an array without a size.
	Dims []uint32
	// Init is nil when there is no initialiser.
	Init *Init
	// Pointer is set on a kernel parameter declared with .ptr.
	Pointer *Pointer
	// Attributes are those of .attribute(...), as written, without the dot.
	Attributes []string
}

// Pointer is what .ptr says of the memory that a parameter points to.
type Pointer struct {
	Space Space
	Align uint32
}

// Init is an initialiser: a value, a symbol's address, or a list.
type Init struct {
	Kind  InitKind
	Value Literal
	// Symbol with Offset bytes; Generic converts to a generic address, and a
	// Mask other than 0 takes the bits it covers, shifted down.
	Symbol  string
	Offset  int64
	Generic bool
	Mask    uint64
	Elems   []Init
}

// InitKind says which fields of an Init count.
type InitKind uint8

// The kinds of initialiser.
const (
	InitValue InitKind = iota
	InitSymbol
	InitList
)

// Function is an .entry or a .func.
type Function struct {
	Line    int
	Linkage Linkage
	Entry   bool
	Name    string
	Returns []*Variable
	Params  []*Variable
	// Directives are those between parameters and body, such as maxntid.
	Directives []Directive
	Attributes []string
	// Body is nil for a declaration.
	Body *Block
}

// Directive is a named list of numbers or a string.
type Directive struct {
	Line int
	Name string
	Args []uint64
	Text string
}

// Alias makes Name another name of the function Target.
type Alias struct {
	Line         int
	Name, Target string
}

// Pragma is a .pragma, at module level or in a body.
type Pragma struct {
	Line  int
	Texts []string
}

func (*Variable) item() {}
func (*Function) item() {}
func (*Alias) item()    {}
func (*Pragma) item()   {}

// Block is a body or a nested scope.
type Block struct {
	Line       int
	Statements []Statement
}

// Statement is one of *Instruction, *Label, *Variable, *Block, *Loc, *Pragma
// and *Targets.
type Statement interface{ statement() }

// Label is a name for the next instruction.
type Label struct {
	Line int
	Name string
}

// Loc gives the source position of the instructions that follow it.
type Loc struct {
	PTXLine            int
	File, Line, Column int
	// FunctionName is a label of the debug section, as written; with it the
	// position was inlined at InlinedAt.
	FunctionName string
	// FunctionOffset is added to FunctionName.
	FunctionOffset int
	InlinedAt      *Loc
}

// Targets is a .branchtargets, .calltargets or .callprototype with its label.
type Targets struct {
	Line  int
	Kind  TargetsKind
	Label string
	Names []string
	// Prototype holds returns, parameters and directives of a .callprototype.
	Prototype *Function
}

// TargetsKind says what a Targets lists.
type TargetsKind uint8

// The kinds of Targets.
const (
	BranchTargets TargetsKind = iota
	CallTargets
	CallPrototype
)

// Instruction is an opcode with modifiers and operands.
type Instruction struct {
	Line, Column int32
	// Guard has an empty Name when the instruction is not guarded.
	Guard Guard
	// Mnemonic is shared by all instructions of a module that spell it alike.
	Mnemonic *Mnemonic
	Operands []Operand
	// Text is the instruction as written, without guard and semicolon; it is
	// empty in a tree made by hand.
	Text string
}

// Guard is the predicate in front of an instruction.
type Guard struct {
	Name    string
	Negated bool
}

// Mnemonic is an opcode and its modifiers, without dots.
type Mnemonic struct {
	Op        string
	Modifiers []string
}

func (*Instruction) statement() {}
func (*Label) statement()       {}
func (*Variable) statement()    {}
func (*Block) statement()       {}
func (*Loc) statement()         {}
func (*Pragma) statement()      {}
func (*Targets) statement()     {}

// Operand is one operand. Which fields count depends on Kind.
type Operand struct {
	Kind OperandKind
	// Negated is the ! before a predicate.
	Negated bool
	// Minus is the - before a source of vmad.
	Minus bool
	// Name is the identifier, or the base of an address; empty for an address
	// that is only a number.
	Name string
	// Component is what follows the name: x of %tid.x or v.x, b0 of a video
	// operand; or an address: unified.
	Component string
	// Value is the immediate, or the offset of a name or address.
	Value Literal
	// Elems are the elements of a vector, pair or list; for an address what
	// follows a comma in the brackets.
	Elems []Operand
}

// OperandKind is the form of an operand.
type OperandKind uint8

// The forms of operands.
const (
	// OperandName is a register, symbol, label or special register, with an
	// offset when Value is not zero.
	OperandName OperandKind = iota
	OperandImmediate
	// OperandAddress is [name+value].
	OperandAddress
	// OperandElement is name[value], value in elements, or name[elem].
	OperandElement
	// OperandVector is {a, b, ...}.
	OperandVector
	// OperandPair is p|q.
	OperandPair
	// OperandList is a parenthesised list of a call.
	OperandList
	// OperandSink is _.
	OperandSink
)

// Literal is a constant. The zero Literal is the integer 0.
type Literal struct {
	Kind LiteralKind
	// Bits is the two's complement of an integer, else the IEEE bits: 32 of
	// them for LiteralF32, 64 for LiteralF64.
	Bits uint64
}

// LiteralKind is how a literal was written.
type LiteralKind uint8

// The kinds of literal.
//
// PTX ISA, "Constants".
const (
	LiteralInt      LiteralKind = iota
	LiteralUnsigned             // with suffix U, or too large for signed
	LiteralF32                  // 0f and eight digits
	LiteralF64                  // 0d and sixteen digits, or decimal
)
