// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptxir

import (
	"slices"
	"strings"
)

// ReferenceSection is a section of the PTX ISA document and what the tables say
// of its instructions.
type ReferenceSection struct {
	Title string
	Rows  []ReferenceRow
}

// ReferenceRow is an instruction with types and modifiers that go together.
type ReferenceRow struct {
	// Name is the opcode, with modifiers where they make it another instruction.
	Name string
	// Types are the alternatives for the type modifiers: for each of them the
	// choices. An alternative without any means that there is no type; no
	// alternative, that every type is refused.
	Types     [][][]string
	Modifiers []ReferenceModifiers
	// Refused is the reason why it cannot run; empty if it runs.
	Refused string
}

// ReferenceModifiers are modifiers of which one may be present, or must be.
type ReferenceModifiers struct {
	Choice   []string
	Required bool
}

// Reference returns what the opcode tables say, for the documentation.
func Reference() []ReferenceSection {
	families() // makes the rows ready
	list := make([]ReferenceSection, len(sections))
	for i, s := range sections {
		list[i].Title = s.title
		for _, table := range s.rows {
			for k := range table {
				list[i].Rows = append(list[i].Rows, table[k].reference()...)
			}
		}
	}
	return list
}

func (f *form) reference() []ReferenceRow {
	row := ReferenceRow{Name: f.name, Refused: f.reason}
	for _, g := range f.groups {
		row.Modifiers = append(row.Modifiers, ReferenceModifiers{g.words, g.required})
	}
	if f.op == OpMma {
		return row.matrix()
	}
	row.lead()
	if f.types == "" {
		row.Types = [][][]string{{}}
	}
	if f.types != "*" {
		for _, alternative := range strings.Fields(f.types) {
			row.Types = append(row.Types, choices(alternative))
		}
	}
	return []ReferenceRow{row}
}

// lead puts modifiers that must stand behind the opcode in front of those of
// the name: mad.cc and lo is mad.lo.cc.
func (r *ReferenceRow) lead() {
	op, rest, more := strings.Cut(r.Name, ".")
	i := slices.IndexFunc(r.Modifiers, func(m ReferenceModifiers) bool { return slices.Contains(leading[op], m.Choice[0]) })
	if !more || i < 0 || slices.Contains(leading[op], rest) {
		return
	}
	group := r.Modifiers[i]
	if len(group.Choice) == 1 {
		r.Name, r.Modifiers = op+"."+group.Choice[0]+"."+rest, slices.Delete(slices.Clone(r.Modifiers), i, i+1)
		return
	}
	named := ReferenceModifiers{Choice: []string{rest}, Required: true}
	r.Name, r.Modifiers = op, append([]ReferenceModifiers{group, named}, slices.Delete(slices.Clone(r.Modifiers), i, i+1)...)
}

// choices reads "f16|f32.s32".
func choices(alternative string) (list [][]string) {
	for _, choice := range strings.Split(alternative, ".") {
		list = append(list, strings.Split(choice, "|"))
	}
	return list
}

// matrix splits the row of mma or mma.sp by what mmaKinds says.
func (r ReferenceRow) matrix() (list []ReferenceRow) {
	for _, k := range mmaKinds {
		shapes := k.shapes
		if r.Name != "mma" {
			shapes = k.sparse
		}
		if shapes == "" {
			continue
		}
		row := r
		row.Modifiers = nil
		for _, m := range r.Modifiers {
			if strings.HasPrefix(m.Choice[0], "m8n8") {
				m.Choice = strings.Fields(shapes)
			}
			if k.elements == "b1" && (m.Choice[0] == "xor" || m.Choice[0] == "popc") {
				m.Required = true
			}
			if k.takes(m.Choice[0]) {
				row.Modifiers = append(row.Modifiers, m)
			}
		}
		elements, sums := strings.Fields(k.elements), strings.Fields(k.sums)
		row.Types = [][][]string{{sums, elements, elements, sums}}
		list = append(list, row)
	}
	return list
}

// takes reports whether mma of these elements may have a modifier.
func (k *mmaKind) takes(word string) bool {
	switch word {
	case "satfinite":
		return k.sums == "s32" && k.elements != "b1"
	case "rn":
		return k.elements == "f64"
	case "xor", "popc":
		return k.elements == "b1"
	}
	return true
}
