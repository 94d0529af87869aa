// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxvm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cudago/cudago/internal/ptxir"
	"github.com/cudago/cudago/internal/ptxvm"
)

// operandsOf are operands that each instruction takes. T, U and V are registers
// of its first, second and third type, W of twice the first; they become
// vectors where the modifiers say so. Names of several operand lists are tried
// in order: the forms of a name may take different ones.
var operandsOf = map[string][]string{
	"T, T, T": strings.Fields("add sub mul div rem min max and or xor copysign add.cc addc addc.cc sub.cc subc subc.cc " +
		"mul24 bmsk szext"),
	"T, U, T":    {"add", "sub"},
	"T, T, T, T": strings.Fields("mad mad24 fma sad min max mad.sat mad.hi.sat madc prmt fns dp4a dp2a"),
	"T, U, U, T": {"fma"},
	"W, T, T":    {"mul.wide"},
	"W, T, T, W": {"mad.wide"},
	"T, T": strings.Fields("abs neg rcp rcp.approx sqrt rsqrt sin cos lg2 ex2 tanh not cnot brev mov " +
		"cvta"),
	"%r1, T":                              {"bfind", "clz", "popc"},
	"%p1, T":                              {"testp"},
	"T, T, %r1, %r2":                      {"bfe"},
	"T, T, T, %r1, %r2":                   {"bfi"},
	"T, T, %r1":                           {"shl", "shr"},
	"T, T, T, %r1":                        {"shf"},
	"T, T, T, T, 0x96":                    {"lop3"},
	"T|%p1, T, T, T, 0x96, %p2":           {"lop3"},
	"T, U":                                {"cvt"},
	"T, U, U":                             {"cvt", "set"},
	"%r1, %r2, %r3":                       {"cvt.pack"},
	"%r1, %r2, %r3, %r4":                  {"cvt.pack"},
	"T, U, U, %p1":                        {"set"},
	"%p1, T, T":                           {"setp"},
	"%p1|%p2, T, T, %p3":                  {"setp"},
	"%p1, T, T, %p3":                      {"setp"},
	"T, T, T, %p1":                        {"selp"},
	"T, T, T, U":                          {"slct"},
	"%p1, %d1":                            {"isspacep"},
	"%r1, %r2, %r3, %r4, -1":              {"shfl.sync"},
	"%r1|%p1, %r2, %r3, %r4":              {"shfl"},
	"T, [%d1, {%r1}]":                     {"tex", "suld.b"},
	"T, [%d1, {%r1, %r2}]":                {"tex", "suld.b"},
	"T, [%d1, {%r1, %r2, %r3, %r4}]":      {"tex", "suld.b"},
	"T, [%d1, {%r1}], %r2":                {"tex"},
	"T, [%d1, {%r1, %r2}], %r3":           {"tex"},
	"T, [%d1, {%r1, %r2, %r3, %r4}], %r5": {"tex"},
	"T, [%d1, {%r1}], {%r2}, {%r3}":       {"tex"},
	"T, [%d1, {%r1, %r2}], {%r3}, {%r4}":  {"tex"},
	"T, [%d1, {%r1, %r2}], {%r3, %r4}, {%r5, %r6}":                               {"tex"},
	"T, [%d1, {%r1, %r2, %r3, %r4}], {%r3, %r4}, {%r5, %r6}":                     {"tex"},
	"T, [%d1, {%r1, %r2, %r3, %r4}], {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}": {"tex"},
	"[%d1, {%r1}], T":                {"sust.b"},
	"[%d1, {%r1, %r2}], T":           {"sust.b"},
	"[%d1, {%r1, %r2, %r3, %r4}], T": {"sust.b"},
	"T, [%d1]":                       {"ld", "ldu"},
	"T, [%d1], %d2":                  {"ld"},
	"T, [pv]":                        {"ld"},
	"[%d1], T":                       {"st", "red"},
	"[%d1], T, %d2":                  {"st", "red"},
	"[cv], T":                        {"st"},
	"[%d1]":                          {"prefetch", "prefetchu", "prefetch.tensormap", "cp.async.mbarrier.arrive", "mbarrier.inval"},
	"[%d1], 128":                     {"discard", "applypriority", "mbarrier.init", "mbarrier.expect_tx", "cp.async.bulk.prefetch"},
	"[%d1], 128, %d2":                {"cp.async.bulk.prefetch"},
	"[%r1], [%d1], 16, [%r2]":        {"cp.async.bulk"},
	"[%r1], [%d1], 16, [%r2], %d2":   {"cp.async.bulk"},
	"[%d1], [%r1], 16":               {"cp.async.bulk"},
	"[%d1], [%r1], 16, %d2":          {"cp.async.bulk"},
	"%d1":                            {"createpolicy.fractional"},
	"%d1, [%d2], %r1, %r2":           {"createpolicy.range"},
	"%d1, %d2":                       {"createpolicy.cvt"},
	"[%r1], [%d1], 16":               {"cp.async.ca", "cp.async.cg"},
	"[%r1], [%d1], 16, %d2":          {"cp.async.ca", "cp.async.cg"},
	"L":                              {"bra"},
	"%r1, targets":                   {"brx.idx"},
	"callee":                         {"call"},
	"%r1":                            {"bar.warp.sync", "nanosleep", "activemask"},
	"1":                              strings.Fields("bar.sync bar.cta.sync barrier.sync barrier.cta.sync cp.async.wait_group cp.async.bulk.wait_group pmevent"),
	"1, 64":                          strings.Fields("bar.arrive bar.cta.arrive barrier.arrive barrier.cta.arrive"),
	"T, 1, 64, %p1":                  strings.Fields("bar.red bar.cta.red barrier.red barrier.cta.red"),
	"T, %p1, -1":                     {"vote.sync"},
	"T, %p1":                         {"vote"},
	"%r1, T, -1":                     {"match.any.sync", "match.all.sync"},
	"T, T, -1":                       {"redux.sync"},
	"%r1|%p1, -1":                    {"elect.sync"},
	"T, [%d1], T":                    {"atom"},
	"T, [%d1], T, %d2":               {"atom"},
	"T, [%d1], T, T":                 {"atom"},
	"T, [%d1], T, T, %d2":            {"atom"},
	"_, [%d2], %r1":                  strings.Fields("mbarrier.arrive mbarrier.arrive_drop mbarrier.arrive.expect_tx mbarrier.arrive_drop.expect_tx"),
	"%p1, [%d1], %d2":                {"mbarrier.test_wait", "mbarrier.try_wait"},
	"%p1, [%d1], %r2":                {"mbarrier.test_wait", "mbarrier.try_wait"},
	"%r1, %d1":                       {"mbarrier.pending_count"},
	"40":                             {"setmaxnreg"},
	"%r1, %r2.b1, %r3.h1":            strings.Fields("vadd vsub vabsdiff vmin vmax vshl vshr vset"),
	"%r1, %r2.b1, %r3.h1, %r4":       strings.Fields("vadd vsub vabsdiff vmin vmax vshl vshr vset"),
	"%r1, %r2, %r3.b0, %r4":          {"vmad"},
	"%r1.h1, %r2.h23, %r3, %r4":      strings.Fields("vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2"),
	"%r1, %r2, %r3.b7012, %r4":       strings.Fields("vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4"),
	"": strings.Fields("ret exit trap brkpt membar fence fence.mbarrier_init fence.proxy.alias fence.proxy.async " +
		"fence.proxy.async::generic membar.proxy.alias membar.proxy.async cp.async.commit_group cp.async.wait_all cp.async.bulk.commit_group griddepcontrol"),
}

// Tensor copies have as many coordinates as dimensions.
func init() {
	for rank := range 5 {
		tensor := "[%d1, {%r1" + strings.Repeat(", %r2", rank) + "}]"
		for _, policy := range []string{"", ", %d2"} {
			operandsOf[tensor+policy] = []string{"cp.async.bulk.prefetch.tensor"}
			operandsOf[tensor+", [%r2]"+policy] = []string{"cp.async.bulk.tensor"}
			operandsOf["[%r1], "+tensor+", [%r2]"+policy] = []string{"cp.async.bulk.tensor"}
		}
	}
}

// matrixSection begins the title of the section of mma and its like.
const matrixSection = "Warp Level Matrix"

// referenceKernel takes an instruction.
const referenceKernel = `.version 9.4 .target sm_107a .address_size 64
.func callee() { ret; }
.visible .entry k(.param .b64 pv) {
.reg .pred %%p<9>; .reg .b8 %%b<9>; .reg .b16 %%h<9>; .reg .b32 %%r<9>; .reg .b64 %%d<9>; .reg .b128 %%q<9>;
targets: .branchtargets L;
.param .align 32 .b8 cv[64];
L: %s;
ret;
}`

// registerFor is the register class of a type's name.
func registerFor(typ string) string {
	switch {
	case typ == "pred":
		return "p"
	case typ == "b128":
		return "q"
	case strings.HasSuffix(typ, "64") || typ == "f32x2":
		return "d"
	case strings.HasSuffix(typ, "32"), typ == "f16x2", typ == "bf16x2", typ == "u16x2", typ == "s16x2":
		return "r"
	}
	return "h"
}

var twiceAsWide = map[string]string{"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}

// operandsFor fills in an operand list for types and modifiers.
func operandsFor(list string, types, modifiers []string) string {
	n := 1
	for _, m := range modifiers {
		if len(m) == 2 && m[0] == 'v' {
			n = int(m[1] - '0')
		}
	}
	register := func(typ string) string {
		class := registerFor(typ)
		if slices.Contains(types, "bf16") && strings.HasSuffix(typ, "8") { // these registers may not be wider
			class = "b"
		}
		if n == 1 {
			return "%" + class + "5"
		}
		var elements []string
		for i := range n {
			elements = append(elements, fmt.Sprintf("%%%s%d", class, i))
		}
		return "{" + strings.Join(elements, ", ") + "}"
	}
	var out strings.Builder
	for _, c := range list {
		i := strings.IndexRune("TUV", c)
		switch {
		case c == 'W':
			out.WriteString(register(twiceAsWide[types[0]]))
		case i >= 0 && len(types) > 0:
			out.WriteString(register(types[min(i, len(types)-1)]))
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}

// eachChoice calls use with one of each choice, for all combinations.
func eachChoice(choices [][]string, use func([]string)) {
	if len(choices) == 0 {
		use(nil)
		return
	}
	eachChoice(choices[1:], func(rest []string) {
		for _, c := range choices[0] {
			use(append([]string{c}, rest...))
		}
	})
}

// eachVariant calls use for each type of a row with each choice of the
// modifiers that it needs, alone and with each one that it does not need.
func eachVariant(r *ptxir.ReferenceRow, use func(types, modifiers []string)) {
	var needed [][]string
	optional := []string{""}
	for _, m := range r.Modifiers {
		if m.Required {
			needed = append(needed, m.Choice)
		} else {
			optional = append(optional, m.Choice...)
		}
	}
	for _, alternative := range r.Types {
		eachChoice(alternative, func(types []string) {
			eachChoice(needed, func(modifiers []string) {
				for _, o := range optional {
					switch o {
					case "":
						use(types, modifiers)
					case "to", "parity": // stand behind the name
						use(types, append([]string{o}, modifiers...))
					default:
						use(types, append(modifiers[:len(modifiers):len(modifiers)], o))
					}
				}
			})
		})
	}
}

// tryOperands loads a kernel with the instruction, with each operand list that
// its name may have, and returns the first success or the last error.
func tryOperands(d *ptxvm.Device, name string, types, modifiers []string) (tried string, err error) {
	parts := append(append([]string{name}, modifiers...), types...)
	err = fmt.Errorf("operandsOf has no operands for it")
	for list, names := range operandsOf {
		for _, n := range names {
			if n != name {
				continue
			}
			tried = strings.Join(parts, ".") + " " + operandsFor(list, types, modifiers)
			if _, err = loadKernel(d, fmt.Sprintf(referenceKernel, tried)); err == nil {
				return tried, nil
			}
		}
	}
	return tried, err
}

func loadKernel(d *ptxvm.Device, text string) (*ptxvm.Kernel, error) {
	ir, err := ptxir.Load("reference", text)
	if err != nil {
		return nil, err
	}
	m, err := d.Load(ir)
	if err != nil {
		return nil, err
	}
	return m.Kernel("k")
}

// requireRefused loads what a row refuses, whose operands do not matter.
func requireRefused(t *testing.T, d *ptxvm.Device, r *ptxir.ReferenceRow) {
	refused := func(types, modifiers []string) {
		tried := strings.Join(append(append([]string{r.Name}, modifiers...), types...), ".")
		_, err := loadKernel(d, fmt.Sprintf(referenceKernel, tried+" %r1"))
		var unsupported *ptxir.UnsupportedError
		require.ErrorAs(t, err, &unsupported, tried)
		require.Equal(t, r.Refused, unsupported.Reason, tried)
		require.NotEmpty(t, unsupported.Section, tried)
	}
	if r.Types == nil {
		refused(nil, nil)
		return
	}
	eachVariant(r, refused)
}

// TestReference holds what the documentation says of each instruction to what
// loading it does: what runs loads, and what is refused is refused for that
// reason. Matrix instructions have tests of their own, with fragments.
func TestReference(t *testing.T) {
	d := ptxvm.NewDevice(ptxvm.Config{Workers: 1})
	defer d.Close()
	n := 0
	for _, s := range ptxir.Reference() {
		if strings.HasPrefix(s.Title, matrixSection) {
			continue
		}
		for _, r := range s.Rows {
			if r.Refused != "" {
				requireRefused(t, d, &r)
				continue
			}
			eachVariant(&r, func(types, modifiers []string) {
				n++
				tried, err := tryOperands(d, r.Name, types, modifiers)
				if err != nil {
					t.Errorf("%s: %v", tried, err)
				}
			})
		}
	}
	require.Greater(t, n, 3000)
}
