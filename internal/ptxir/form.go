// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cudago/cudago/internal/ptx"
)

// form is one row of the opcode tables: a spelling of an instruction, with the
// types and modifiers that it takes.
type form struct {
	// name is the opcode, with modifiers where they make it another instruction,
	// such as "bar.warp.sync".
	name string
	// types are the alternatives for the type modifiers. Several types of one
	// alternative are joined by dots, and each may be a choice: "f16|f32.s32"
	// is "f16.s32 f32.s32". "" is no type, "*" leaves it to lower.
	types string
	// words are the other modifiers, in groups of which at most one, and with
	// a "!" at the end exactly one, may be present: "rn|rz! ftz". A trailing
	// "*" in a group allows repetition; "*" alone allows every word.
	words string
	op    Op
	// args are the operands of plain instructions; see plain.
	args string
	// lower does what args cannot say. Nil is plain.
	lower func(*body)
	// reason is set on rows that only refuse: valid PTX that cannot run here.
	reason, hint string

	section  *section
	groups   []wordGroup
	typeList [][]Type
}

type wordGroup struct {
	words    []string
	required bool
	repeated bool
}

// variant is the meaning of one mnemonic.
type variant struct {
	form  *form
	types []Type
	words []string // modifiers that are not types, beyond the form's name
	mod   Mod
	round Round
	cmp   Cmp
	bool  BoolOp
	space Space
	atom  AtomOp
	mode  Mode
	// vector is the number of elements of .v2, .v4 and .v8, else 1.
	vector int
	// refuse is the reason why it cannot run, if it cannot.
	refuse *UnsupportedError
	// invalid is the reason why it is no PTX, if it is none.
	invalid string
}

// typ is the first type.
func (v *variant) typ() Type { return v.types[0] }

func (v *variant) has(word string) bool { return slices.Contains(v.words, word) }

var typeByName = func() map[string]Type {
	m := make(map[string]Type, typeCount)
	for t := Pred; t < typeCount; t++ {
		m[t.String()] = t
	}
	return m
}()

// family is the forms of one name.
type family struct {
	// words are the parts of the name beyond the opcode.
	words []string
	forms []*form
}

// families returns the tables by opcode, made ready at first use.
var families = sync.OnceValue(func() map[string][]*family {
	byName := map[string]*family{}
	byOpcode := map[string][]*family{}
	for _, f := range allForms() {
		f.prepare()
		fam := byName[f.name]
		if fam == nil {
			parts := strings.Split(f.name, ".")
			fam = &family{words: parts[1:]}
			byName[f.name] = fam
			byOpcode[parts[0]] = append(byOpcode[parts[0]], fam)
		}
		fam.forms = append(fam.forms, f)
	}
	return byOpcode
})

// allForms returns the rows of all sections, in their order.
func allForms() (list []*form) {
	for i := range sections {
		for _, table := range sections[i].rows {
			for k := range table {
				table[k].section = &sections[i]
				list = append(list, &table[k])
			}
		}
	}
	return list
}

func (f *form) prepare() {
	for _, g := range strings.Fields(f.words) {
		if g == "*" {
			f.groups = nil
			break
		}
		text, required := strings.CutSuffix(g, "!")
		text, repeated := strings.CutSuffix(text, "*")
		f.groups = append(f.groups, wordGroup{strings.Split(text, "|"), required, repeated})
	}
	if f.types == "*" {
		return
	}
	if f.types == "" {
		f.typeList = [][]Type{{}}
	}
	for _, alternative := range strings.Fields(f.types) {
		lists := [][]Type{nil}
		for _, choice := range strings.Split(alternative, ".") {
			var longer [][]Type
			for _, list := range lists {
				for _, name := range strings.Split(choice, "|") {
					t, ok := typeByName[name]
					if !ok {
						panic("BUG: opcode table: " + f.name + ": no type " + name)
					}
					longer = append(longer, append(slices.Clone(list), t))
				}
			}
			lists = longer
		}
		f.typeList = append(f.typeList, lists...)
	}
}

// variant returns the meaning of a mnemonic.
func (l *loader) variant(m *ptx.Mnemonic) *variant {
	v := l.variants[m]
	if v == nil {
		v = decode(m)
		l.variants[m] = v
	}
	return v
}

// decode finds the form of a mnemonic and reads its modifiers.
func decode(m *ptx.Mnemonic) *variant {
	v := &variant{vector: 1}
	if w := misplaced(m); w != "" {
		v.invalid = fmt.Sprintf("%s: .%s belongs to the name of the instruction and stands behind it", m, w)
		return v
	}
	candidates, rest := find(m.Op, onceEach(m.Modifiers))
	if candidates == nil {
		v.invalid = fmt.Sprintf("unknown instruction %s", m)
		return v
	}
	for _, word := range rest {
		if t, ok := typeByName[word]; ok {
			v.types = append(v.types, t)
		} else {
			v.words = append(v.words, word)
		}
	}
	most := -1
	for _, f := range candidates {
		if !f.takes(v.types) {
			continue
		}
		if wrong, taken := f.misfit(v.words); wrong != nil {
			// Another row may take the modifiers. If none does, of those that run the one
			// that takes most tells why.
			if taken > most && f.reason == "" {
				most, v.invalid, v.refuse = taken, wrong.invalid, wrong.refuse
			}
			continue
		}
		v.form, v.invalid, v.refuse = f, "", nil
		if f.reason != "" {
			v.refuse = &UnsupportedError{Reason: f.reason, Section: f.section.title, Hint: f.hint}
			return v
		}
		for _, word := range v.words {
			v.read(word)
		}
		v.forget()
		return v
	}
	if v.invalid == "" && v.refuse == nil {
		v.wrongTypes(m, candidates[0].section)
	}
	return v
}

// repeatable are the modifiers that ptxas takes any number of times.
var repeatable = map[string]bool{
	"NaN": true, "approx": true, "cc": true, "relu": true, "sat": true, "satfinite": true, "shiftamt": true, "sync": true, "uni": true,
}

// onceEach leaves out the repetitions of modifiers that may be repeated.
func onceEach(modifiers []string) []string {
	met := map[string]bool{}
	once := make([]string, 0, len(modifiers))
	for _, w := range modifiers {
		if !repeatable[w] || !met[w] {
			once = append(once, w)
		}
		met[w] = true
	}
	return once
}

// leading are the modifiers that ptxas has in the name of an instruction, by
// opcode: no other modifier stands in front of them.
var leading = map[string][]string{
	"mul": {"lo", "hi", "wide"}, "mad": {"lo", "hi", "wide"}, "madc": {"lo", "hi"}, "mul24": {"lo", "hi"}, "mad24": {"lo", "hi"},
	"dp2a": {"lo", "hi"}, "shf": {"l", "r"}, "div": {"full"}, "setmaxnreg": {"inc", "dec"}, "cvta": {"to"}, "cvt": {"pack"}, "brx": {"idx"},
	"createpolicy": {"fractional", "range", "cvt"}, "bar": {"cta", "red", "warp"}, "barrier": {"cta", "red"},
	"cp": {"async", "reduce", "bulk", "mbarrier", "arrive"},
	"mbarrier": {
		"init", "inval", "arrive", "arrive_drop", "test_wait", "try_wait", "pending_count", "expect_tx", "complete_tx", "parity",
	},
}

// misplaced returns a leading modifier that does not lead, or "".
func misplaced(m *ptx.Mnemonic) string {
	words := leading[m.Op]
	for i, w := range m.Modifiers {
		if i > 0 && slices.Contains(words, w) && !slices.Contains(words, m.Modifiers[i-1]) {
			return w
		}
	}
	return ""
}

// find looks up the name with the most words that the mnemonic has, and among
// those the one whose words come first. Like ptxas it takes them in any order.
// rest is the modifiers that are not part of the name.
func find(op string, modifiers []string) (candidates []*form, rest []string) {
	var best *family
	bestPlace := 0
	for _, f := range families()[op] {
		place, ok := f.within(modifiers)
		if ok && (best == nil || len(f.words) > len(best.words) || len(f.words) == len(best.words) && place < bestPlace) {
			best, bestPlace = f, place
		}
	}
	if best == nil {
		return nil, nil
	}
	rest = slices.Clone(modifiers)
	for _, w := range best.words {
		i := slices.Index(rest, w)
		rest = slices.Delete(rest, i, i+1)
	}
	return best.forms, rest
}

// within reports whether all words of the name are among the modifiers, and
// the sum of their places.
func (f *family) within(modifiers []string) (place int, ok bool) {
	for _, w := range f.words {
		i := slices.Index(modifiers, w)
		if i < 0 {
			return 0, false
		}
		place += i
	}
	return place, true
}

func (f *form) takes(types []Type) bool {
	return f.types == "*" || slices.ContainsFunc(f.typeList, func(list []Type) bool { return slices.Equal(list, types) })
}

// wrongTypes says what is wrong with types that no row takes.
func (v *variant) wrongTypes(m *ptx.Mnemonic, s *section) {
	switch {
	case s.open:
		v.refuse = &UnsupportedError{Reason: fmt.Sprintf("%s is not implemented for these types", m.Op), Section: s.title, Hint: hintForms}
	case len(v.types) == 0:
		v.invalid = fmt.Sprintf("%s lacks a type", m)
	default:
		v.invalid = fmt.Sprintf("%s does not exist for these types", m)
	}
}

// misfit returns why the row does not take the words, as a variant that is
// invalid or refused, or nil if it does; and how many it takes.
func (f *form) misfit(words []string) (wrong *variant, taken int) {
	seen := make([]bool, len(f.groups))
	for i, word := range words {
		switch {
		case f.words == "*" || f.allows(word, seen):
		case f.section.open && knownWord(word):
			return &variant{refuse: &UnsupportedError{
				Reason: fmt.Sprintf("the modifier .%s of %s is not implemented", word, f.name), Section: f.section.title, Hint: hintForms,
			}}, i
		default:
			return &variant{invalid: fmt.Sprintf("%s does not take the modifier .%s", f.name, word)}, i
		}
	}
	for i, g := range f.groups {
		if g.required && !seen[i] {
			return &variant{invalid: fmt.Sprintf("%s needs one of .%s", f.name, strings.Join(g.words, ", ."))}, len(words)
		}
	}
	return nil, len(words)
}

// forget drops the meanings that the instruction has no use for: "lo" is a
// comparison of setp and the low half of mul.
func (v *variant) forget() {
	switch v.form.op {
	case OpSet, OpSetp:
		v.mode, v.atom = ModeNone, AtomNone
		return
	case OpLop3, OpMma:
		v.mode, v.atom, v.cmp = ModeNone, AtomNone, CmpNone
		return
	case OpAtom, OpRedux:
		v.mode = ModeNone
	default:
		v.atom = AtomNone
	}
	v.cmp, v.bool = CmpNone, BoolNone
}

func (f *form) allows(word string, seen []bool) bool {
	for i, g := range f.groups {
		if slices.Contains(g.words, word) && (!seen[i] || g.repeated) {
			seen[i] = true
			return true
		}
	}
	return false
}

// read notes what a word means, in whichever way the instruction uses it.
func (v *variant) read(word string) {
	w, ok := words[word]
	if !ok {
		return
	}
	v.mod |= w.mod
	if w.round != RoundNone {
		v.round = w.round
	}
	if w.cmp != CmpNone {
		v.cmp = w.cmp
	}
	if w.bool != BoolNone {
		v.bool = w.bool
	}
	if w.atom != AtomNone {
		v.atom = w.atom
	}
	if w.mode != ModeNone {
		v.mode = w.mode
	}
	if w.hasSpace {
		v.space = w.space
	}
	if w.vector != 0 {
		v.vector = w.vector
	}
}
