// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import "slices"

// Param is one parameter of a kernel as the host must pack it.
type Param struct {
	Name string
	// Type is the declared element type, such as "f32" or "u64"; structs are
	// arrays of "b8".
	Type string
	// Size and Offset are bytes, of the whole parameter in the packed block.
	Size, Align, Offset uint32
	// ArrayLen is the number of elements, 0 for a scalar.
	ArrayLen uint32
	// Pointer says that the parameter is declared with .ptr.
	Pointer bool
}

// Signatures returns the parameters of every entry in text, in order. It reads
// declarations only, passing bodies unread, so it also accepts modules whose
// instructions it does not know.
//
// Errors: a [*SyntaxError].
func Signatures(text string) (signatures map[string][]Param, err error) {
	defer recoverSyntax(&err)
	p := newParser(text)
	p.skipBodies = true
	signatures = map[string][]Param{}
	for _, item := range p.module().Items {
		if f, ok := item.(*Function); ok && f.Entry {
			signatures[f.Name] = Layout(f.Params)
		}
	}
	return signatures, nil
}

// Variables returns the names of the variables of text in global and constant
// memory, in order. Like [Signatures] it reads declarations only.
//
// Errors: a [*SyntaxError].
func Variables(text string) ([]string, error) { return variablesIn(text, SpaceGlobal, SpaceConst) }

// Constants is [Variables] of those in constant memory.
func Constants(text string) ([]string, error) { return variablesIn(text, SpaceConst) }

func variablesIn(text string, spaces ...Space) (names []string, err error) {
	defer recoverSyntax(&err)
	p := newParser(text)
	p.skipBodies = true
	for _, item := range p.module().Items {
		if v, ok := item.(*Variable); ok && slices.Contains(spaces, v.Space) {
			names = append(names, v.Name)
		}
	}
	return names, nil
}

// Layout lays out the parameters of an entry: each at the next multiple of
// its alignment.
//
// PTX ISA, "Kernel Function Parameters".
func Layout(params []*Variable) []Param {
	list := make([]Param, len(params))
	end := uint32(0)
	for i, v := range params {
		a := Param{Name: v.Name, Type: v.Type.String(), Size: uint32(v.Bytes()), Align: v.Alignment(), Pointer: v.Pointer != nil}
		if len(v.Dims) > 0 {
			a.ArrayLen = uint32(v.Elements())
		}
		a.Offset = (end + a.Align - 1) &^ (a.Align - 1)
		end = a.Offset + a.Size
		list[i] = a
	}
	return list
}

// Elements is the number of elements of an array, and 1 for a scalar. It is 0
// for an array without a size.
func (v *Variable) Elements() uint64 {
	n := uint64(1)
	for _, d := range v.Dims {
		n *= uint64(d)
	}
	return n
}

// Bytes is the size in memory; 0 for an array without a size.
func (v *Variable) Bytes() uint64 {
	return v.Elements() * uint64(v.Type.Size()) * uint64(max(v.Vector, 1))
}

// Alignment is the alignment given, or the natural one of the type: that of
// the whole vector for vectors.
func (v *Variable) Alignment() uint32 {
	if v.Align != 0 {
		return v.Align
	}
	return max(v.Type.Size(), 1) * uint32(max(v.Vector, 1))
}
