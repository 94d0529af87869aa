// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

// function reads from .entry or .func to the end of the body or prototype.
func (p *parser) function() *Function {
	f := &Function{Entry: p.tok.text == "entry"}
	p.advance()
	f.Attributes = p.attributes()
	if !f.Entry && p.tok.kind == '(' {
		f.Returns = p.parameters(false)
	}
	f.Name = p.ident("a function name")
	if p.tok.kind == '(' {
		f.Params = p.parameters(f.Entry)
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
func (p *parser) parameters(entry bool) []*Variable {
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
		if p.tok.kind == ',' || p.tok.kind == ')' {
			// A prototype may leave the names out.
			v.Name = "_"
		} else {
			p.declarator(v)
		}
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
		case p.tok.kind == tokenDot && functionDirectives[p.tok.text]:
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

// functionDirectives may stand between parameters and body; any other begins
// the next item of the module.
var functionDirectives = map[string]bool{
	"maxntid": true, "reqntid": true, "minnctapersm": true, "maxnctapersm": true, "maxnreg": true,
	"reqnctapercluster": true, "maxclusterrank": true, "abi_preserve": true, "abi_preserve_control": true,
	"noreturn": true, "explicitcluster": true, "blocksareclusters": true,
	// Known to ptxas, not to the ISA document.
	"minperctamemory": true, "local_maxnreg": true, "language": true,
	"pragma": true, "attribute": true, "loc": true,
}

// directive reads one performance-tuning or ABI directive.
//
// PTX ISA, "Performance-Tuning Directives", "Kernel and Function Directives".
func (p *parser) directive(f *Function) {
	d := Directive{Line: p.tok.line, Name: p.tok.text}
	switch d.Name {
	case "noreturn", "explicitcluster", "blocksareclusters":
		p.advance()
	case "pragma":
		pragma := p.pragma()
		for _, text := range pragma.Texts {
			f.Directives = append(f.Directives, Directive{Line: d.Line, Name: d.Name, Text: text})
		}
		return
	case "attribute":
		f.Attributes = append(f.Attributes, p.attributes()...)
		return
	case "loc":
		p.loc()
		return
	default:
		p.advance()
		d.Args = append(d.Args, p.size(d.Name, 1<<32-1))
		for p.accept(',') {
			d.Args = append(d.Args, p.size(d.Name, 1<<32-1))
		}
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
				p.constant()
				for p.accept(',') {
					p.constant()
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
