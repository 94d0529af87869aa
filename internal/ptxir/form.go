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
	// types are the alternatives for the type modifiers; several types of one
	// alternative are joined by dots. "" is no type, "*" leaves it to lower.
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
	// reason is set on rows that only refuse; section is the PTX ISA's title.
	reason, section, hint string

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

// hasPrefix reports a modifier such as L2::cache_hint by its first part.
func (v *variant) hasPrefix(prefix string) bool {
	return slices.ContainsFunc(v.words, func(w string) bool { return strings.HasPrefix(w, prefix) })
}

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
	for _, table := range [][]form{arithForms, bitForms, moveForms, memoryForms, warpForms, controlForms, videoForms, refusedForms} {
		for i := range table {
			f := &table[i]
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
	}
	return byOpcode
})

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
		var list []Type
		for _, name := range strings.Split(alternative, ".") {
			t, ok := typeByName[name]
			if !ok {
				panic("BUG: opcode table: " + f.name + ": no type " + name)
			}
			list = append(list, t)
		}
		f.typeList = append(f.typeList, list)
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
	candidates, rest := find(m)
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
	for _, f := range candidates {
		if v.form = f; f.takes(v.types) {
			if f.reason != "" {
				v.refuse = &UnsupportedError{Reason: f.reason, Section: f.section, Hint: f.hint}
				return v
			}
			v.readWords()
			return v
		}
	}
	v.wrongTypes(m)
	return v
}

// find looks up the name with the most words that the mnemonic has, and among
// those the one whose words come first. Like ptxas it takes them in any order.
// rest is the modifiers that are not part of the name.
func find(m *ptx.Mnemonic) (candidates []*form, rest []string) {
	var best *family
	bestPlace := 0
	for _, f := range families()[m.Op] {
		place, ok := f.within(m.Modifiers)
		if ok && (best == nil || len(f.words) > len(best.words) || len(f.words) == len(best.words) && place < bestPlace) {
			best, bestPlace = f, place
		}
	}
	if best == nil {
		return nil, nil
	}
	rest = slices.Clone(m.Modifiers)
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

// wrongTypes says what is wrong with types that no row takes: the plain ones
// are an error in the text, the newer ones may be valid PTX.
func (v *variant) wrongTypes(m *ptx.Mnemonic) {
	for _, t := range v.types {
		if t > F64 {
			v.refuse = &UnsupportedError{Reason: fmt.Sprintf("%s is not implemented for these types", m.Op)}
			return
		}
	}
	if len(v.types) == 0 {
		v.invalid = fmt.Sprintf("%s lacks a type", m)
		return
	}
	v.invalid = fmt.Sprintf("%s does not exist for these types", m)
}

// readWords checks the words against the form and reads their meaning.
func (v *variant) readWords() {
	f := v.form
	seen := make([]bool, len(f.groups))
	for _, word := range v.words {
		if f.words != "*" && !f.allows(word, seen) {
			if knownWord(word) {
				v.refuse = &UnsupportedError{Reason: fmt.Sprintf("the modifier .%s of %s is not implemented", word, f.name)}
			} else {
				v.invalid = fmt.Sprintf("%s does not take the modifier .%s", f.name, word)
			}
			return
		}
		v.read(word)
	}
	v.forget()
	for i, g := range f.groups {
		if g.required && !seen[i] {
			v.invalid = fmt.Sprintf("%s needs one of .%s", f.name, strings.Join(g.words, ", ."))
			return
		}
	}
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
