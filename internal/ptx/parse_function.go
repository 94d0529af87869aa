// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import "math"

// function reads from .entry or .func to the end of the body or prototype.
func (p *parser) function() *Function {
	f := &Function{Entry: p.tok.text == "entry"}
	p.advance()
	f.Attributes = p.attributes()
	if !f.Entry && p.tok.kind == '(' {
		f.Returns = p.parameters(false, false)
	}
	f.Name = p.newName("a function name")
	if p.tok.kind == '(' {
		f.Params = p.parameters(f.Entry, f.Entry)
	}
	p.directives(f)
	if p.tok.kind == '{' && p.skipBodies {
		f.Body = &Block{Line: p.tok.line}
		p.lex.skipBody(p.tok.at)
		p.advance()
		return f
	}
	if p.tok.kind == '{' {
		f.Body = p.body()
		return f
	}
	if !p.accept(';') && p.tok.kind != tokenDot && p.tok.kind != tokenEOF {
		// Before ISA 3.0 a prototype had no semicolon, which ptxas still accepts.
		p.fail("expected a body or \";\", found %s", p.found())
	}
	return f
}

// parameters reads a parenthesised list of parameter or register declarations.
// Those that nobody can name may be called "_".
func (p *parser) parameters(entry, nameless bool) []*Variable {
	p.expect('(')
	var list []*Variable
	for p.tok.kind != ')' {
		if len(list) > 0 {
			p.expect(',')
		}
		v := p.declarationHead(Internal)
		if v.Space != SpaceParam && (v.Space != SpaceReg || entry) {
			p.fail("a parameter must be .param%s, not .%s", map[bool]string{false: " or .reg"}[entry], v.Space)
		}
		if !nameless || p.tok.kind != tokenIdent || p.tok.text != "_" {
			v.Name = p.newName("a name")
		} else {
			v.Name = p.ident("a name")
		}
		p.declarator(v)
		if entry && len(v.Dims) > 0 && v.Dims[0] == 0 {
			p.fail("a kernel's parameter %s needs a size", v.Name)
		}
		list = append(list, v)
	}
	p.advance()
	return list
}

func (p *parser) directives(f *Function) {
	for {
		switch {
		case p.tok.kind == tokenDot && p.isFunctionDirective():
			p.directive(f)
		case p.tok.kind == tokenIdent && p.tok.text == "noreturn":
			// nvcc once wrote it without its dot.
			f.Directives = append(f.Directives, Directive{Line: p.tok.line, Name: "noreturn"})
			p.advance()
		default:
			return
		}
	}
}

func (p *parser) isFunctionDirective() bool {
	_, ok := functionDirectives[p.tok.text]
	return ok
}

// functionDirectives may stand between parameters and body; any other begins
// the next item of the module.
//
// PTX ISA, "Performance-Tuning Directives", "Kernel and Function Directives".
var functionDirectives = map[string]struct {
	entry, function bool // where it may stand
	most            int  // numbers that follow; one at least unless it is 0
	positive        bool
}{
	"maxntid":      {entry: true, most: 3, positive: true},
	"reqntid":      {entry: true, most: 3, positive: true},
	"minnctapersm": {entry: true, most: 1, positive: true}, "maxnctapersm": {entry: true, most: 1},
	"maxnreg":           {entry: true, most: 1, positive: true},
	"reqnctapercluster": {entry: true, most: 3}, "maxclusterrank": {entry: true, most: 1},
	"explicitcluster": {entry: true}, "blocksareclusters": {entry: true},
	"pragma":       {entry: true, function: true},
	"abi_preserve": {function: true, most: 1}, "abi_preserve_control": {function: true, most: 1},
	"noreturn": {function: true},
	// Known to ptxas, not to the ISA document.
	"minperctamemory": {entry: true, most: 1},
	"local_maxnreg":   {entry: true, function: true, most: 1}, "language": {entry: true, function: true, most: 1},
}

func (p *parser) directive(f *Function) {
	d := Directive{Line: p.tok.line, Name: p.tok.text}
	rule := functionDirectives[d.Name]
	if f.Entry && !rule.entry || !f.Entry && !rule.function {
		p.fail(".%s is for %s", d.Name, map[bool]string{true: ".entry", false: ".func"}[rule.entry])
	}
	if d.Name == "pragma" {
		for _, text := range p.pragma().Texts {
			f.Directives = append(f.Directives, Directive{Line: d.Line, Name: d.Name, Text: text})
		}
		return
	}
	p.advance()
	for len(d.Args) < rule.most && (len(d.Args) == 0 || p.accept(',')) {
		at := p.tok.at
		n := p.size(d.Name, 1<<32-1)
		if n == 0 && rule.positive {
			p.lex.fail(at, "%s must be more than 0", d.Name)
		}
		d.Args = append(d.Args, n)
	}
	f.Directives = append(f.Directives, d)
}

// attributes reads .attribute(.a, .b(1, 2)), if it is there.
func (p *parser) attributes() []string {
	var list []string
	for p.acceptDot("attribute") {
		p.expect('(')
		for {
			if p.tok.kind != tokenDot {
				p.fail("expected an attribute, found %s", p.found())
			}
			at := p.tok.at + 1
			p.advance()
			if p.accept('(') {
				p.size("an attribute", math.MaxUint64)
				for p.accept(',') {
					p.size("an attribute", math.MaxUint64)
				}
				p.expect(')')
			}
			list = append(list, p.lex.src[at:p.prevEnd])
			if !p.accept(',') {
				break
			}
		}
		p.expect(')')
	}
	return list
}
