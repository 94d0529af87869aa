// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"encoding/binary"
	"strings"
)

// debugSections are the bytes of the DWARF sections of a module.
//
// PTX ISA, "Debugging Directives: .section".
type debugSections struct {
	data   map[string][]byte
	labels map[string]uint64 // offsets in their sections
	uses   []labelUse
}

// labelUse is a value that refers to a label, which may be defined later.
type labelUse struct {
	section   string
	at, width int
	label     string
	addend    uint64
}

var debugWidths = map[string]int{"b8": 1, "b16": 2, "b32": 4, "b64": 8}

// maxDebug bounds the bytes of all sections.
const maxDebug = 1 << 30

func newDebugSections() *debugSections {
	return &debugSections{data: map[string][]byte{}, labels: map[string]uint64{}}
}

// read reads the body of a section, whose opening brace is the parser's token.
func (d *debugSections) read(p *parser, name string) {
	p.expect('{')
	for p.tok.kind != '}' {
		switch p.tok.kind {
		case tokenIdent:
			d.labels[p.tok.text] = uint64(len(d.data[name]))
			p.advance()
			p.expect(':')
		case tokenDot:
			width := debugWidths[p.tok.text]
			if width == 0 {
				p.fail("expected a type of data, found %s", p.found())
			}
			p.advance()
			d.list(p, name, width)
		default:
			p.fail("expected data, found %s", p.found())
		}
	}
	p.advance()
}

// list reads the values behind a type.
func (d *debugSections) list(p *parser, section string, width int) {
	for {
		var bytes [8]byte
		binary.LittleEndian.PutUint64(bytes[:], d.value(p, section, width))
		d.data[section] = append(d.data[section], bytes[:width]...)
		if len(d.data[section]) > maxDebug {
			p.fail("section %s is larger than %d bytes", section, maxDebug)
		}
		if !p.accept(',') {
			return
		}
	}
}

// value reads a number, or what stands for one: a section, which is its own
// offset 0; or a label, or its distance to another one. Addresses of code and of
// variables are 0: the driver places them.
func (d *debugSections) value(p *parser, section string, width int) uint64 {
	switch p.tok.kind {
	case tokenDot:
		p.advance()
		return uint64(p.offset())
	case tokenIdent:
	default:
		return p.constant().Bits
	}
	use := labelUse{section: section, at: len(d.data[section]), width: width, label: p.tok.text}
	p.advance()
	if p.accept('-') {
		// Distances in code; what reads the types of parameters needs none.
		p.ident("a label")
		return 0
	}
	use.addend = uint64(p.offset())
	d.uses = append(d.uses, use)
	return 0
}

// resolve writes the offsets of labels to where they are used.
func (d *debugSections) resolve() {
	for _, use := range d.uses {
		at, ok := d.labels[use.label]
		if !ok {
			continue
		}
		var bytes [8]byte
		binary.LittleEndian.PutUint64(bytes[:], at+use.addend)
		copy(d.data[use.section][use.at:use.at+use.width], bytes[:])
	}
}

// DebugParam is a parameter of a kernel as debug information describes it.
type DebugParam struct {
	Name string
	// Type is written as in C++: "const float*". Other names of a type (typedef)
	// are replaced by what they mean.
	Type string
}

// DebugParams returns the parameters of those entries of text that its debug
// information describes. An entry is left out if it is described in two ways, or
// with other parameters than it has. What cannot be read describes nothing.
func DebugParams(text string) (found map[string][]DebugParam) {
	if !strings.Contains(text, "debug_info") {
		return nil
	}
	// Whatever the text: parser and debug/dwarf stop with a panic, or an error.
	defer func() {
		if recover() != nil {
			found = nil
		}
	}()
	p := newParser(text)
	p.skipBodies, p.debug = true, newDebugSections()
	items := p.module().Items
	p.debug.resolve()
	described := readDescriptions(p.debug.data)
	found = map[string][]DebugParam{}
	for _, item := range items {
		if f, ok := item.(*Function); ok && f.Entry {
			if params := described.of(f.Name, Layout(f.Params)); params != nil {
				found[f.Name] = params
			}
		}
	}
	return found
}
