// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"strconv"
	"strings"
)

func (p *parser) module() *Module {
	m := &Module{Source: p.lex.src, Files: map[int]string{}}
	p.tree = m
	// PTX ISA, "PTX Module Directives": in this order, and .version once.
	if p.isDirective("version") {
		p.version(m)
		for p.isDirective("target") {
			p.target(m)
		}
	}
	for p.tok.kind != tokenEOF {
		p.moduleItem(m)
	}
	return m
}

func (p *parser) moduleItem(m *Module) {
	switch p.tok.kind {
	case '@':
		p.dwarf()
		return
	case tokenDot:
	default:
		p.fail("expected a directive, found %s", p.found())
	}
	switch p.tok.text {
	case "version", "target":
		p.fail(".version and .target begin a module, in this order")
	case "address_size":
		p.addressSize(m)
	case "file":
		p.file(m)
	case "section":
		p.section()
	case "pragma":
		m.Items = append(m.Items, p.pragma())
	case "alias":
		m.Items = append(m.Items, p.alias())
	default:
		m.Items = p.declarationItems(m.Items)
	}
}

func (p *parser) isDirective(name string) bool { return p.tok.kind == tokenDot && p.tok.text == name }

// target reads .target, which may be repeated. As ptxas has it, the last one
// names the architecture; options add up.
func (p *parser) target(m *Module) {
	p.advance()
	list := []string{p.ident("a target")}
	for p.accept(',') {
		list = append(list, p.ident("a target option"))
	}
	if len(m.Target) > 0 {
		if !strings.HasPrefix(list[0], "sm_") && !strings.HasPrefix(list[0], "compute_") {
			list = append(m.Target[:1:1], list...)
		}
		list = append(list, m.Target[1:]...)
	}
	m.Target = list
}

func (p *parser) addressSize(m *Module) {
	if m.AddressSize != 0 || len(m.Items) > 0 {
		p.fail(".address_size stands once, before all declarations")
	}
	p.advance()
	at := p.tok.at
	m.AddressSize = p.number("address size")
	if m.AddressSize != 32 && m.AddressSize != 64 {
		p.lex.fail(at, "address size must be 32 or 64, got %d", m.AddressSize)
	}
}

func (p *parser) version(m *Module) {
	p.advance()
	major, minor, ok := strings.Cut(p.tok.text, ".")
	a, err1 := strconv.ParseUint(major, 10, 16)
	b, err2 := strconv.ParseUint(minor, 10, 16)
	if p.tok.kind != tokenNumber || !ok || err1 != nil || err2 != nil {
		p.fail("expected a version such as 8.0, found %s", p.found())
	}
	m.Major, m.Minor = int(a), int(b)
	p.advance()
}

// file reads .file number "name" [, timestamp, size].
func (p *parser) file(m *Module) {
	p.advance()
	n := p.number("file number")
	if p.tok.kind != tokenString {
		p.fail("expected a file name, found %s", p.found())
	}
	m.Files[n] = p.tok.text
	p.advance()
	for p.accept(',') {
		p.constant()
	}
}

// section skips .section name { ... }, or reads it for [DebugParams]: DWARF.
func (p *parser) section() {
	p.advance()
	name := strings.TrimPrefix(p.tok.text, ".")
	switch p.tok.kind {
	case tokenDot, tokenIdent, tokenString:
		p.advance()
	default:
		p.fail("expected a section name, found %s", p.found())
	}
	// Old sections have flags behind the name.
	for p.tok.kind != '{' && p.tok.kind != ';' && p.tok.kind != tokenEOF {
		p.advance()
	}
	if p.tok.kind != '{' {
		p.fail("expected \"{\", found %s", p.found())
	}
	if p.debug != nil {
		p.debug.read(p, name)
		return
	}
	p.lex.skipBody(p.tok.at)
	p.advance()
}

// dwarf skips the line of an @@DWARF directive.
func (p *parser) dwarf() {
	p.advance()
	if p.tok.kind != '@' {
		p.fail("expected a directive, found a guard outside of a function")
	}
	p.lex.skipLine()
	p.advance()
}

func (p *parser) pragma() *Pragma {
	x := &Pragma{Line: p.tok.line}
	p.advance()
	for {
		if p.tok.kind != tokenString {
			p.fail("expected a string, found %s", p.found())
		}
		x.Texts = append(x.Texts, p.tok.text)
		p.advance()
		if !p.accept(',') {
			break
		}
	}
	p.expect(';')
	return x
}

func (p *parser) alias() *Alias {
	x := &Alias{Line: p.tok.line}
	p.advance()
	x.Name = p.ident("a name")
	p.expect(',')
	x.Target = p.ident("a function")
	p.expect(';')
	return x
}

// declarationItems reads a function, or a declaration of variables.
func (p *parser) declarationItems(items []Item) []Item {
	line := p.tok.line
	linkage := p.linkage()
	if p.tok.kind != tokenDot {
		p.fail("expected a directive, found %s", p.found())
	}
	if p.tok.text == "entry" || p.tok.text == "func" {
		f := p.function()
		f.Line, f.Linkage = line, linkage
		return append(items, f)
	}
	if p.isDirective("reg") || p.isDirective("local") {
		// Where a brace is missing, it is missing here.
		p.fail(".%s is declared in functions", p.tok.text)
	}
	p.variableList(linkage, func(v *Variable) { items = append(items, v) })
	return items
}

func (p *parser) linkage() Linkage {
	linkage := Internal
	for p.tok.kind == tokenDot {
		i := Internal
		switch p.tok.text {
		case "visible":
			i = Visible
		case "extern":
			i = Extern
		case "weak":
			i = Weak
		case "common":
			i = Common
		}
		if i == Internal {
			break
		}
		// ".visible .weak" occurs; the more particular one counts.
		if linkage != Weak {
			linkage = i
		}
		p.advance()
	}
	return linkage
}
