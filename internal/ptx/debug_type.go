// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"debug/dwarf"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// spelled is a type as C++ writes it, and its size, or -1. A type that cannot
// be written has no text.
type spelled struct {
	text string
	size int64
}

// typeSpeller writes types as C++ does. It reads entries one by one: where they
// refer to each other in a circle, package dwarf would follow them for ever.
type typeSpeller struct {
	data  *dwarf.Data
	known map[dwarf.Offset]spelled
}

// maxTypeDepth bounds how many types may be behind each other, and maxTypeText what a
// type that is made of another one repeats of it: many may be made of one.
const (
	maxTypeDepth = 32
	maxTypeText  = 4096
)

// pointerSize is the size of addresses: cudago has no modules of 32 bits.
const pointerSize = 8

func newTypeSpeller(data *dwarf.Data) *typeSpeller {
	return &typeSpeller{data: data, known: map[dwarf.Offset]spelled{}}
}

func (s *typeSpeller) spell(off dwarf.Offset, depth int) spelled {
	if t, ok := s.known[off]; ok {
		return t
	}
	if depth > maxTypeDepth {
		return spelled{}
	}
	var t spelled
	if e := entryAt(s.data, off); e != nil {
		t = s.entry(e, depth)
	}
	if !printable(t.text) {
		t = spelled{}
	}
	s.known[off] = t
	return t
}

func (s *typeSpeller) entry(e *dwarf.Entry, depth int) spelled {
	switch e.Tag {
	case dwarf.TagBaseType:
		return baseType(e)
	case dwarf.TagStructType:
		return tagged("struct", e)
	case dwarf.TagClassType:
		return tagged("class", e)
	case dwarf.TagUnionType:
		return tagged("union", e)
	case dwarf.TagEnumerationType:
		return tagged("enum", e)
	case dwarf.TagUnspecifiedType:
		return spelled{"void", -1}
	case dwarf.TagArrayType:
		return spelled{suffixed(s.repeated(e, depth).text, "[]"), -1}
	case dwarf.TagSubroutineType:
		return spelled{"void ()", -1}
	case dwarf.TagTypedef:
		return s.inner(e, depth)
	}
	return s.derived(e, depth)
}

// derived writes what adds something to another type.
func (s *typeSpeller) derived(e *dwarf.Entry, depth int) spelled {
	t := s.repeated(e, depth)
	if t.text == "" {
		return t
	}
	switch e.Tag {
	case dwarf.TagPointerType:
		return spelled{pointerTo(t.text), pointerSize}
	case dwarf.TagReferenceType, dwarf.TagRvalueReferenceType:
		return spelled{t.text + "&", pointerSize}
	case dwarf.TagRestrictType:
		return spelled{t.text + " __restrict__", t.size}
	case dwarf.TagConstType:
		return spelled{qualified(t.text, "const"), t.size}
	case dwarf.TagVolatileType:
		return spelled{qualified(t.text, "volatile"), t.size}
	}
	return spelled{}
}

// inner writes the type that another one is made of. Nothing stands for void.
func (s *typeSpeller) inner(e *dwarf.Entry, depth int) spelled {
	off, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
	if !ok {
		return spelled{"void", -1}
	}
	return s.spell(off, depth+1)
}

// repeated writes the type that another one's text begins with.
func (s *typeSpeller) repeated(e *dwarf.Entry, depth int) spelled {
	t := s.inner(e, depth)
	if len(t.text) > maxTypeText {
		return spelled{}
	}
	return t
}

func suffixed(text, suffix string) string {
	if text == "" {
		return ""
	}
	return text + suffix
}

// pointerTo writes a pointer: arrays and functions have it inside.
func pointerTo(text string) string {
	if i := strings.IndexAny(text, "[("); i >= 0 {
		return strings.TrimRight(text[:i], " ") + " (*)" + text[i:]
	}
	return text + "*"
}

func qualified(text, word string) string {
	if strings.ContainsAny(text, "*&") {
		return text + " " + word
	}
	return word + " " + text
}

// tagged writes a type of the source with its keyword, so that nobody takes it
// for a type of numbers that is called so. Those of CUDA's headers, such as
// __half, are reserved names.
func tagged(keyword string, e *dwarf.Entry) spelled {
	size, ok := e.Val(dwarf.AttrByteSize).(int64)
	if !ok {
		size = -1
	}
	name, _ := e.Val(dwarf.AttrName).(string)
	switch {
	case name == "":
		return spelled{keyword + " {}", size}
	case strings.HasPrefix(name, "__"):
		return spelled{name, size}
	}
	return spelled{keyword + " " + name, size}
}

// Encodings of base types: DWARF 5, "Base Type Encodings".
const (
	encodingBool         = 2
	encodingFloat        = 4
	encodingSigned       = 5
	encodingSignedChar   = 6
	encodingUnsigned     = 7
	encodingUnsignedChar = 8
)

var integerWords = regexp.MustCompile(`^(?:(?:signed|unsigned|char|short|int|long) ?)+$`)

// baseType writes a type of numbers. Other languages have other names for them.
func baseType(e *dwarf.Entry) spelled {
	name, _ := e.Val(dwarf.AttrName).(string)
	size, _ := e.Val(dwarf.AttrByteSize).(int64)
	encoding, _ := e.Val(dwarf.AttrEncoding).(int64)
	switch encoding {
	case encodingBool:
		if size == 1 {
			name = "bool"
		}
	case encodingFloat:
		if word := map[int64]string{4: "float", 8: "double"}[size]; word != "" {
			name = word
		}
	case encodingSigned, encodingSignedChar, encodingUnsigned, encodingUnsignedChar:
		name = integerName(name, size, encoding >= encodingUnsigned)
	}
	return spelled{name, size}
}

// integerName keeps a name of C++ if it means this size here, as long does not
// in code that was compiled on Windows.
func integerName(name string, size int64, unsigned bool) string {
	if integerWords.MatchString(name) && (size == 8 || !strings.Contains(name, "long")) {
		return name
	}
	word := map[int64]string{1: "char", 2: "short", 4: "int", 8: "long long"}[size]
	switch {
	case word == "":
		return name
	case unsigned:
		return "unsigned " + word
	case size == 1:
		return "signed char"
	}
	return word
}

// identifier returns a name if it is one, or nothing.
func identifier(name string) string {
	for i, c := range name {
		if c != '_' && c != '$' && !unicode.IsLetter(c) && (i == 0 || !unicode.IsDigit(c)) {
			return ""
		}
	}
	return name
}

func printable(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, unicode.IsControl) < 0
}
