// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptx"
)

// inKernel puts instructions into a kernel with registers of every class.
func inKernel(body string) string {
	return `.version 8.0 .target sm_80 .address_size 64
.global .u32 variable; .shared .u32 tile[4]; .extern .global .u32 elsewhere;
.extern .func missing(.param .b32 x); .extern .func cudaGetParameterBufferV2(); .extern .func cudaCGSynchronize(); .extern .func __nv_sinf();
.func defined(.param .b32 x) { ret; }
.entry k(.param .u64 p) {
.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .f32 %f<4>; .reg .f64 %d<4>; .reg .v2 .f32 %v;
` + body + "\n}"
}

// invalidInstructions are what a message says of each.
var invalidInstructions = []struct{ name, body, msg string }{
	{"unknown opcode", "frob.u32 %r1, %r2;", "unknown instruction frob.u32"},
	{"unknown modifier", "add.fast.u32 %r1, %r2, %r3;", "add does not take the modifier .fast"},
	{"no type", "add %r1, %r2, %r3;", "add lacks a type"},
	{"type that the opcode lacks", "add.pred %p1, %p2, %p3;", "add.pred does not exist for these types"},
	{"missing rounding", "fma.f32 %f1, %f1, %f2, %f3;", "fma needs one of .rn, .rz, .rm, .rp"},
	{"missing cvt rounding", "cvt.s32.f32 %r1, %f1;", "cvt needs one of .rni, .rzi, .rmi, .rpi"},
	{"narrow register", "add.u32 %h1, %r2, %r3;", "%h1 is declared .b16, which does not fit the .u32 of add.u32"},
	{"wide register", "add.u32 %r1, %rd1, %r3;", "%rd1 is declared .b64, which does not fit the .u32 of add.u32"},
	{"narrow load", "ld.global.u64 %r1, [%rd1];", "%r1 is declared .b32, which is too narrow for the .u64 of ld.global.u64"},
	{"undeclared register", "add.u32 %r1, %q2, %r3;", "%q2 is not declared"},
	{"register beyond the range", "add.u32 %r1, %r9, %r3;", "%r9 is not declared"},
	{"undeclared destination", "add.u32 %q1, %r2, %r3;", "%q1 is not a declared register"},
	{"float in an integer register", "add.u32 %r1, %f1, %r2;", "%f1 is declared .f32, which does not fit the .u32 of add.u32"},
	{"integer constant for a float", "add.f32 %f1, %f1, 1;", "1 is no constant of type .f32"},
	{"special register in a sum", "add.u32 %r1, %tid.x, 1;", "add.u32 takes registers and constants, and %tid is neither"},
	{"special register to a float", "cvt.rn.f32.u32 %f1, %tid.x;", "cvt.rn.f32.u32 takes registers and constants, and %tid is neither"},
	{"address in a sum", "add.u64 %rd1, variable, 4;", "add.u64 takes registers and constants, and variable is neither"},
	{"use before the declaration", "mov.b32 late, 1; .reg .b32 late;", "late is not a declared register"},
	{"targets after the branch", "A: brx.idx %r1, list; list: .branchtargets A;", "brx.idx needs the label of a .branchtargets"},
	{"name of a range", ".reg .b32 %r1;", "%r1 is declared twice"},
	{"name of a parameter", ".reg .b64 p;", "p is declared twice"},
	{"register with a value", ".reg .b32 x = 1;", "x: registers have no initial value"},
	{"saturation that cannot happen", "cvt.sat.u32.u16 %r1, %h1;", "cvt does not take the modifier .sat"},
	{"join of an integer type", "mov.u32 %r1, {%h1, %h2};", "a .u32 cannot be split into 2 parts"},
	{"split and join", "mov.b32 {%h1, %h2}, {%h2, %h1};", "mov.b32 splits or joins, but not both"},
	{"nothing wanted of a split", "mov.b32 {_, _}, %r1;", "mov.b32: an element at least must be wanted"},
	{"nothing wanted of a comparison", "setp.eq.u32 _|_, %r1, %r2;", "setp.eq.u32: one of the results must be wanted"},
	{"second result for halves", "setp.eq.f16 %p1|%p2, %h1, %h2;", "setp.eq.f16 has one result"},
	{"nothing wanted of a load", "ld.global.b32 _, [%rd1];", "ld.global.b32: only elements of a vector can be left out"},
	{"sum as a destination", "ld.global.b32 %r1+4, [%rd1];", "%r1: nothing can be added to a destination"},
	{"store to a parameter", "st.param.b64 [p], %rd1;", "a kernel's parameters cannot be written"},
	{"parameter of no function", "ld.param::func.b64 %rd1, [p];", "p is a parameter of a kernel, not of a function"},
	{"short address", "ld.global.b32 %r1, [%r2];", "ld.global.b32: the address %r2 needs 64 bits"},
	{"scope without an order", "ld.gpu.global.b32 %r1, [%rd1];", "ld needs one of .relaxed, .acquire"},
	{"order without a scope", "ld.acquire.global.b32 %r1, [%rd1];", "ld needs one of .cta, .cluster, .gpu, .sys"},
	{"32 bytes of shared memory", "ld.shared.v4.b64 {%rd1,%rd2,%rd3,%rd1}, [%r1];", "ld does not take the modifier .v4"},
	{"cache policy of a store", "st.L2::128B.global.b32 [%rd1], %r1;", "st does not take the modifier .L2::128B"},
	{"acquiring reduction", "red.acquire.gpu.add.u32 [%rd1], 1;", "red does not take the modifier .acquire"},
	{"sum of signed words", "atom.add.s64 %rd1, [%rd1], 1;", "atom does not take the modifier .add"},
	{"sum added to a function", "mov.u64 %rd1, defined+8;", "nothing can be added to the address of defined"},
	{"argument of another size", ".param .b64 x; call defined, (x);", "x has 8 bytes, parameter 1 of the function 4"},
	{"more and less", "vmad.u32.u32.u32.po %r1, -%r2, %r3, %r4;", "vmad.u32.u32.u32.po: nothing can be negated"},
	{"arrival without a state", "mbarrier.arrive.shared.b64 [%r1], 1;", "mbarrier.arrive.shared.b64: the destination must be a register"},
	{"state from afar", "mbarrier.arrive.shared::cluster.b64 %rd1, [%r1];",
		"mbarrier.arrive.shared::cluster.b64: the state of another block's barrier is not known; write _"},
	{"bytes without a number", "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1];", "mbarrier.arrive.expect_tx.shared.b64 takes a state or _, an address, and a count"},
	{"order of an arrival without a scope", "mbarrier.arrive.release.shared.b64 %rd1, [%r1];", "mbarrier.arrive needs one of .cta, .cluster"},
	{"test with a time", "mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1, 5;", "mbarrier.test_wait.shared.b64 takes 3 operands, got 4"},
	{"no elements", "vadd2.u32.u32.u32 %r1, %r2.h, %r3, %r4;", "%r2 has no parts .h"},
	{"parts of another size", "vadd2.u32.u32.u32 %r1.b0, %r2, %r3, %r4;", "%r1 has no parts .b0"},
	{"part that there is not", "vadd2.u32.u32.u32 %r1, %r2.h14, %r3, %r4;", "%r2 has no parts .h14"},
	{"too few elements", "vadd4.u32.u32.u32 %r1, %r2.b321, %r3, %r4;", "%r2.b321 does not select 4 elements"},
	{"rising places", "vmin4.u32.u32.u32 %r1.b12, %r2, %r3, %r4;", "%r1.b12: the places do not descend"},
	{"parts of what is merged into", "vavrg2.u32.u32.u32 %r1, %r2, %r3, %r4.h10;", "the last operand of vavrg2.u32.u32.u32 has no parts"},
	{"SIMD video on a number", "vset2.u32.u32.eq %r1, %r2, 3, %r4;", "vset2.u32.u32.eq takes registers only"},
	{"wide register of bf16", "cvt.rzi.s8.bf16 %r1, %h1;", "%r1 is declared .b32, which does not fit the .s8 of cvt.rzi.s8.bf16"},
	{"merge and combine", "vadd.u32.u32.u32.max %r1.b0, %r2, %r3, %r4;", "vadd.u32.u32.u32.max cannot both merge and combine"},
	{"discarded sum", "add.u32 _, %r1, %r2;", "add.u32: the destination must be a register"},
	{"constant destination", "add.u32 1, %r2, %r3;", "add.u32: the destination must be a register"},
	{"too few operands", "add.u32 %r1, %r2;", "add.u32 needs more operands than 2"},
	{"too many operands", "add.u32 %r1, %r2, %r3, %r4;", "add.u32 takes 3 operands, got 4"},
	{"guard that is no predicate", "@%r1 add.u32 %r1, %r2, %r3;", "the guard %r1 is not a predicate register"},
	{"label of nowhere", "bra away;", "away is not a label of this function"},
	{"wrong space", "ld.global.u32 %r1, [tile];", "tile is declared in .shared, not .global"},
	{"fraction as an address", "ld.global.u32 %r1, [%f1];", "%f1 cannot be an address"},
	{"wide special register", "mov.u64 %rd1, %tid.x;", "%tid is declared .u32, which does not fit the .u64 of mov.u64"},
	{"narrow special register", "mov.u16 %h1, %laneid;", "%laneid is declared .u32, which does not fit the .u16 of mov.u16"},
	{"special register of a wide conversion", "cvt.u32.u64 %r1, %clock;", "%clock is declared .u32, which does not fit the .u64 of cvt.u32.u64"},
	{"component that no block has", "mov.u32 %r1, %cluster_ctaid.q;", "%cluster_ctaid has no component .q"},
	{"element of a register", "mov.u32 %r1, %r2[1];", "%r2 is a register, not an array"},
	{"address in a register's element", "ld.global.u32 %r1, %rd1[1];", "%rd1 is a register, not an array"},
	{"barrier of no block", "bar.sync 16;", "bar.sync: there are barriers 0 to 15, not 16"},
	{"part of a warp at a barrier", "barrier.red.popc.u32 %r1, 1, 48, %p1;", "barrier.red.popc.u32: 48 threads are no whole warps"},
	{"arrival of nobody", "bar.arrive 1, 0;", "bar.arrive: 0 threads are no whole warps"},
	{"name behind a type", "mul.u32.lo %r1, %r2, %r3;", "mul.u32.lo: .lo belongs to the name of the instruction and stands behind it"},
	{"name behind a modifier", "mbarrier.shared.init.b64 [%r1], 1;",
		"mbarrier.shared.init.b64: .init belongs to the name of the instruction and stands behind it"},
	{"component of a scalar", "mov.u32 %r1, %r2.x;", "%r2 has no component .x"},
	{"vector of two widths", "st.global.v2.b32 [%rd1], {%r1, %rd1};", "the elements of a vector are of one type, not .b32 and .b64"},
	{"halves of two widths", "ld.global.v2.b16 {%h1, %r1}, [%rd1];", "the elements of a vector are of one type, not .b16 and .b32"},
	{"too many registers", "setmaxnreg.inc.sync.aligned.u32 264;", "setmaxnreg.inc.sync.aligned.u32: expected a multiple of 8 from 24 to 256, got 264"},
	{"event that no device has", "pmevent 16;", "pmevent: expected 0 to 15, got 16"},
	{"half a cache line", "discard.global.L2 [%rd1], 64;", "discard.global.L2: expected 128 bytes, got 64"},
	{"modifier twice", "add.ftz.ftz.f32 %f1, %f1, %f1;", "add does not take the modifier .ftz"},
	{"idle source of a sum", "atom.global.add.u32 %r1, [%rd1], %r2, %r3;", "atom.global.add.u32 takes 3 operands, got 4"},
	{"idle constant", "atom.global.exch.b32 %r1, [%rd1], %r2, 3;", "atom.global.exch.b32 takes 3 operands, got 4"},
	{"no brackets", "ld.global.u32 %r1, %rd1;", "ld.global.u32: expected an address in brackets"},
	{"atomic on a parameter", "atom.add.u32 %r1, [p], 1;", "p is declared in .param, which has no generic loads"},
	{"vector in shared memory", "atom.shared.v2.f32.add {%f1,%f2}, [%r1], {%f1,%f2};", "atom does not take the modifier .v2"},
	{"vector at a shared variable", "atom.v2.f32.add {%f1,%f2}, [tile], {%f1,%f2};", "atom.v2.f32.add: vectors are in .global"},
	{"vector of 32 bytes", "red.global.v8.f16x2.add.noftz [%rd1], {%r1,%r2,%r3,%r1,%r1,%r1,%r1,%r1};", "red does not take the modifier .v8"},
	{"smallest of two halves", "red.global.min.noftz.f16 [%rd1], %h1;", "red needs one of .v2, .v4, .v8"},
	{"sum of halves that may flush", "red.global.add.f16 [%rd1], %h1;", "red needs one of .noftz"},
	{"and of 128 bits", "red.global.and.b128 [%rd1], %rd1;", "red.global.and.b128 does not exist for these types"},
	{"unsigned comparison of signed", "setp.lo.s32 %p1, %r1, %r2;", "setp does not take the modifier .lo"},
	{"vector without component", "add.f32 %f1, %v, %f2;", "%v is a vector of 2: name a component"},
	{"no such component", "add.f32 %f1, %v.z, %f2;", "%v has no component .z"},
	{"two vector elements of four", "ld.global.v4.f32 {%f1, %f2}, [%rd1];", "ld.global.v4.f32 needs 4 elements, got 2"},
	{"call of a variable", "call variable;", "variable is not a declared function"},
	{"call of a kernel", "call k;", "k is a kernel, which cannot be called"},
	{"missing argument", "call defined;", "call has 0 arguments, the function 1"},
	{"declared twice", ".reg .b32 x; .reg .b64 x;", "x is declared twice"},
	{"copy size", "cp.async.ca.shared.global [%r1], [%rd1], 5;", "cp.async.ca.shared.global cannot copy 5 bytes"},
	{"fragment size", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2}, {%r1,%r2}, {%r3}, {%f1,%f2};",
		"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 needs a vector of 4 registers, got 2"},
	{"shape that the type lacks", "mma.sync.aligned.m16n8k16.row.col.s32.s4.s4.s32 {%r1,%r2,%r3,%r1}, {%r1}, {%r3}, {%r1,%r2,%r3,%r1};",
		"mma.sync.aligned.m16n8k16.row.col.s32.s4.s4.s32: the shape does not exist for .s4"},
	{"types that do not go together", "mma.sync.aligned.m16n8k32.row.col.s32.s4.s8.s32 {%r1,%r2,%r3,%r1}, {%r1,%r2}, {%r3}, {%r1,%r2,%r3,%r1};",
		"mma.sync.aligned.m16n8k32.row.col.s32.s4.s8.s32 does not exist for these types"},
	{"two kinds of sums", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f16 {%f1,%f2,%f3,%f1}, {%r1,%r2}, {%r3}, {%r1,%r2};",
		"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f16: the types of c and d differ"},
	{"columns of A", "mma.sync.aligned.m16n8k8.col.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f1}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f1};",
		"mma.sync.aligned.m16n8k8.col.col.f32.f16.f16.f32: a is .row and b is .col"},
	{"bits without an operation", "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32 {%r1,%r2}, {%r3}, {%r1}, {%r1,%r2};",
		"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32: .b1, and only that, takes .xor.popc or .and.popc"},
	{"rounding of halves", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32.rz {%f1,%f2,%f3,%f1}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f1};",
		"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32.rz: the modifier does not exist for these types"},
	{"sparse shape", "mma.sp.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f1}, {%r1}, {%r3}, {%f1,%f2,%f3,%f1}, %r1, 0;",
		"mma.sp.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32: the shape does not exist for .f16"},
	{"selector", "mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%r1,%r2,%r3,%r1}, {%r1,%r1,%r1,%r1}, {%r3,%r1,%r1,%r1}, {%r1,%r2,%r3,%r1}, %r1, 1;",
		"mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32: the selector must be less than 1, got 1"},
	{"tall matrix as it lies", "ldmatrix.sync.aligned.m16n16.x1.shared.b8x16.b4x16_p64 {%r1,%r2}, [%r1];",
		"ldmatrix.sync.aligned.m16n16.x1.shared.b8x16.b4x16_p64: .m16n16 is transposed, .m8n16 is not"},
	{"four tall matrices", "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8x16.b4x16_p64 {%r1,%r2}, [%r1];",
		"ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8x16.b4x16_p64: there are at most two matrices of 16 rows"},
	{"wmma shape", "wmma.load.a.sync.aligned.row.m16n16k16.s4 {%r1}, [%rd1];",
		"wmma.load.a.sync.aligned.row.m16n16k16.s4: the shape does not exist for .s4"},
	{"rows of B", "wmma.load.b.sync.aligned.row.m8n8k128.b1 {%r1}, [%rd1];",
		"wmma.load.b.sync.aligned.row.m8n8k128.b1: a is .row and b is .col"},
}

func TestInvalidInstructions(t *testing.T) {
	for _, tt := range invalidInstructions {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load("test", inKernel(tt.body))
			var syntax *ptx.SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.Equal(t, tt.msg, syntax.Msg)
			require.Equal(t, 7, syntax.Line)
		})
	}
}

func TestInvalidModules(t *testing.T) {
	tests := []struct{ name, text, msg string }{
		{"another version", ".version 0.0", ".version and .target begin a module, in this order"},
		{"variable twice", ".global .u32 x; .global .u32 x;", "x is declared twice"},
		{"function twice", ".func f() {ret;} .func f() {ret;}", "f is defined twice, first on line 1"},
		{"kernel and function", ".func f(); .entry f() {ret;}", "f is declared as something else before"},
		{"other parameters", ".func f(.param .b32 a); .func f(.param .b64 a) {ret;}", "f is declared with other parameters on line 1"},
		{"driver's function with too little", ".extern .func (.param .b32 r) vprintf(.param .b64 a); " +
			".entry k() {.param .b64 x; .param .b32 y; call (y), vprintf, (x); ret;}",
			"vprintf is the driver's, and takes parameters of [8 8] bytes and returns [4]"},
		{"driver's function that returns too much", ".extern .func (.param .b64 r) vprintf(.param .b64 a, .param .b64 b); " +
			".entry k() {.param .b64 x; call (x), vprintf, (x, x); ret;}",
			"vprintf is the driver's, and takes parameters of [8 8] bytes and returns [4]"},
		{"function used too early", ".entry k() {call f; ret;} .func f() {ret;}", "f is not a declared function"},
		{"variable used too early", ".global .u64 x = y; .global .u32 y;", "x: initialiser names y, which is not declared"},
		{"address of shared", ".shared .u32 y; .global .u64 x = y;", "x: y is in .shared, whose addresses are no initial values"},
		{"value of another's", ".extern .global .u32 x = 3;", "x: an .extern variable cannot have an initialiser"},
		{"list for a scalar", ".global .u32 x = {1};", "x: an array needs a list of initial values, and an element one"},
		{"flat list", ".global .u32 x[2][2] = {1, 2, 3, 4};", "x: an array needs a list of initial values, and an element one"},
		{"two bytes of an address", ".global .u16 x = 0xffff(x);", "x: a mask takes one byte of an address"},
		{"alias of a new name", ".func g() {ret;} .alias f, g;", ".alias f: the name is not declared"},
		{"too many initialisers", ".global .u32 x[2] = {1, 2, 3};", "x has more initialisers than elements"},
		{"initialiser of shared", ".shared .u32 x = 1;", "x: variables in .shared cannot have an initialiser"},
		{"address of nothing", ".global .u64 x = y;", "x: initialiser names y, which is not declared"},
		{"integer for a float", ".global .f32 x = 1;", "x: 1 is no initial value of type .f32"},
		{"float for an integer", ".global .u32 x = 1.5;", "x: 0d3FF8000000000000 is no initial value of type .u32"},
		{"address in two bytes", ".global .u16 x = x;", "x: an address does not fit 2 bytes"},
		{"no size", ".global .u32 x[];", "x has no size: only an .extern or initialised array may leave it out"},
		{"alias of nothing", ".alias f, g;", ".alias f: g is no function of this module"},
		{"alias of a kernel", ".entry k() {ret;} .func f(); .alias f, k;", ".alias f: k is no function of this module"},
		{"alias of a declaration", ".extern .func g(); .func f(); .alias f, g;", ".alias f: g is declared only"},
		{"alias with other parameters", ".func g() {ret;} .func f(.param .b32 x); .alias f, g;", ".alias f: g has other parameters"},
		{"registers of a module", ".reg .b32 x;", ".reg is declared in functions"},
		{"local memory of a module", ".local .b32 x;", ".local is declared in functions"},
		{"two numbers of threads", ".entry k() .maxntid 32 .reqntid 32 {ret;}", ".reqntid does not go with what stands in front of it"},
		{"too many parameters", ".entry k(.param .b8 x[4096], .param .b8 y[257]) {ret;}", "the parameters of k exceed 4352 bytes"},
		{"too much constant memory", ".const .b8 x[3]; .const .align 8 .b8 y[65529];", "the constant variables of the module exceed 65536 bytes"},
		{"too much shared memory of a kernel", ".entry k() { .shared .b8 x[49153]; ret; }",
			"k has 49153 bytes of static shared memory, and may have 49152: declare it .extern, and give its size at the launch"},
		{"too much shared memory of functions",
			".shared .b8 x[40000]; .func g() { .shared .align 16 .b8 y[9160]; ret; } .func f() { call g; ret; } .entry k() { st.shared.u8 [x], 1; call f; ret; }",
			"k has 49160 bytes of static shared memory, and may have 49152: declare it .extern, and give its size at the launch"},
		{"too much local memory of a kernel", ".entry k() { .local .b8 x[4294967280]; .local .b8 y[32]; ret; }", "the local variables of k exceed 2147483647 bytes"},
		{"too much local memory of a function", ".func f(.param .b8 x[1073741824]) { .local .b8 y[1073741824]; ret; }", "the local variables of f exceed 2147483647 bytes"},
		{"parameters with room between them", ".entry k(.param .b8 x, .param .align 4096 .b8 y[257]) {ret;}", "the parameters of k exceed 4352 bytes"},
		{"a size beyond 64 bits", ".global .b8 x[1048576][1048576][16777216];", "x is larger than 1099511627776 bytes"},
		{"an initial value far behind", ".global .b8 x[][1048576][1048576] = {{{1}}, {{2}}};",
			"x has an initial value at byte 1099511627776, and they may reach to 1073741824"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load("test", ".version 8.0 .target sm_80 "+tt.text)
			var syntax *ptx.SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.Equal(t, tt.msg, syntax.Msg)
		})
	}
}

// Limits that are just met, and what does not count: module variables that no
// kernel names, and what only an address leads to.
func TestLimitsThatAreMet(t *testing.T) {
	for _, text := range []string{
		".version 8.0 .target sm_80 .entry k(.param .b8 x[4352]) {ret;}",
		".version 8.1 .target sm_80 .entry k(.param .b8 x[32764]) {ret;}",
		".version 8.0 .target sm_80 .const .b8 x[65536];",
		".version 8.0 .target sm_80 .shared .b8 x[49153]; .extern .shared .b8 d[]; .entry k() { .shared .b8 y[49152]; st.shared.u8 [d], 1; ret; }",
		".version 8.0 .target sm_80 .func f() { .shared .b8 x[40000]; ret; } .entry k() { .shared .b8 y[40000]; .reg .b64 %a; mov.u64 %a, f; ret; }",
	} {
		_, err := Load("test", text)
		require.NoError(t, err)
	}
}

func TestTextThatIsNoModule(t *testing.T) {
	for text, msg := range map[string]string{
		"":                    "the module has no .version",
		"\x00":                "the module has no .version",
		".version 8.0":        "the module has no .target",
		"\x7fELF\x02\x01\x01": "unexpected character '\\x7f'",
	} {
		_, err := Load("test", text)
		var syntax *ptx.SyntaxError
		require.ErrorAs(t, err, &syntax)
		require.Equal(t, msg, syntax.Msg)
	}
}

func TestUnsupportedInstructions(t *testing.T) {
	tests := []struct{ name, body, reason string }{
		{"texture", "tld4.r.2d.v4.f32.f32 {%f1,%f1,%f1,%f1}, [%rd1, {%f1,%f1}];", reasonTexture},
		{"surface of elements", "sust.p.1d.b32.trap [%rd1, {%r1}], {%r1};", reasonSurface},
		{"surface that is a variable", "suld.b.1d.b32.trap {%r1}, [variable, {%r1}];", "a surface that is a variable is not simulated, only one that is a handle"},
		{"texture with a sampler", "tex.1d.v4.f32.s32 {%f1,%f1,%f1,%f1}, [%rd1, %rd2, {%r1}];", "a sampler that is not the texture's is not simulated"},
		{"texture that is a variable", "tex.1d.v4.f32.s32 {%f1,%f1,%f1,%f1}, [variable, {%r1}];", "a texture that is a variable is not simulated, only one that is a handle"},
		{"tensor reduction", "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd1, {%r1}], [%r2];", reasonBulk},
		{"tensor copy of columns", "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r1, %r1}], [%r2], {%h1};", reasonBulk},
		{"copy to other blocks", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 16, [%r2], %h1;", reasonBulk},
		{"fifth generation", "tcgen05.wait::ld.sync.aligned;", reasonTcgen},
		{"newer modifier", "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%f1,%f1,%f1,%f1}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, {%f1,%f1,%f1,%f1};",
			"the modifier .kind::f8f6f4 of mma is not implemented"},
		{"newer conversion", "cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;", reasonStochastic},
		{"newer type", "cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2;", reasonFP4},
		{"byte vectors", "add.u8x4 %r1, %r2, %r3;", reasonBytes},
		{"constant at a short address", "ld.const.b32 %r1, [%r2];", "constant memory at 32-bit addresses is not simulated"},
		{"function in 32 bits", "mov.u32 %r1, defined;", "the address of defined in 32 bits is not simulated"},
		{"undocumented form", "addc.u16 %h1, %h2, %h3;", reasonUnwritten},
		{"performance counter", "mov.u32 %r1, %pm0;", "%pm0: performance counters are not simulated"},
		{"undefined function", "call missing, (%r1);", "it calls missing, which this module declares but does not define"},
		{"device runtime", "call cudaGetParameterBufferV2;", "it calls cudaGetParameterBufferV2, of the device runtime: kernels cannot launch kernels here"},
		{"old grid barrier", "call cudaCGSynchronize;", "it calls cudaCGSynchronize, of the device runtime, which is not linked"},
		{"undefined variable", "ld.global.u32 %r1, [elsewhere];",
			"elsewhere is declared .extern and not defined in this module"},
		{"half an address", "ld.global.u32 %r1, [%h1];", "the address %h1 has 16 bits"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Load("test", inKernel(tt.body))
			require.NoError(t, err)
			_, err = m.Kernel("k")
			var refused *UnsupportedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, tt.reason, refused.Reason)
			require.Equal(t, 7, refused.Line)
			require.NotEmpty(t, refused.Instruction)
			require.NotEmpty(t, refused.Hint)
		})
	}
}

// What a module lacks can be linked to it.
func TestUndefinedNamesLinker(t *testing.T) {
	for _, body := range []string{"call missing, (%r1);", "ld.global.u32 %r1, [elsewhere];"} {
		m, err := Load("test", inKernel(body))
		require.NoError(t, err)
		_, err = m.Kernel("k")
		var refused *UnsupportedError
		require.ErrorAs(t, err, &refused)
		require.Contains(t, refused.Hint, "cudago.Linker")
	}
}

func TestUnsupportedReachesCallers(t *testing.T) {
	m, err := Load("sample.ptx", `.version 8.0 .target sm_90
.file 1 "sample.cu"
.func deep() {
	.loc 1 17 3
	cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16;
	ret;
}
.func middle() { call deep; call middle; ret; }
.entry uses() { call middle; ret; }
.entry free() { ret; }
.entry same() { call deep; ret; }`)
	require.NoError(t, err)
	free, err := m.Kernel("free")
	require.NoError(t, err)
	require.NotEmpty(t, free.Blocks)
	_, err = m.Kernel("uses")
	require.EqualError(t, err, `ptx: sample.ptx, line 5: "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16" cannot run on the simulated device: `+
		`of bulk and tensor copies (TMA), only plain and tiled loads, stores and prefetches by one block are simulated (PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy"); `+
		`kernel uses, in function deep, from sample.cu:17; compile for sm_75 or sm_80, where libraries take another path`)
	list := m.Unsupported()
	require.Len(t, list, 2)
	require.Equal(t, "uses", list[0].Kernel)
	require.Equal(t, "same", list[1].Kernel)
	_, err = m.Kernel("none")
	var missing *NotFoundError
	require.ErrorAs(t, err, &missing)
}

func TestOldAddressesAreRefused(t *testing.T) {
	_, err := Load("old", ".version 6.0 .target sm_30 .address_size 32 .entry k() {ret;}")
	var refused *UnsupportedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "addresses have 64 bits", refused.Reason)
}
