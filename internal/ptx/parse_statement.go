// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import "slices"

// body reads a braced list of statements.
func (p *parser) body() *Block {
	p.enter()
	defer p.leave()
	opened := p.tok.at
	b := &Block{Line: p.tok.line}
	p.expect('{')
	for {
		switch p.tok.kind {
		case '}':
			p.advance()
			return b
		case tokenEOF:
			p.lex.fail(opened, "brace is not closed")
		case '{':
			b.Statements = append(b.Statements, p.body())
		case tokenDot:
			p.statementDirective(b)
		case '@', '\\', tokenIdent:
			p.instructionOrLabel(b)
		default:
			p.fail("expected a statement, found %s", p.found())
		}
	}
}

func (p *parser) statementDirective(b *Block) {
	switch p.tok.text {
	case "loc":
		b.Statements = append(b.Statements, p.loc())
	case "pragma":
		b.Statements = append(b.Statements, p.pragma())
	case "branchtargets", "calltargets", "callprototype":
		p.fail(".%s needs a label", p.tok.text)
	case "target":
		// Of a part of the text, says the ISA; ptxas changes the module's.
		p.target(p.tree)
	case "section":
		p.section()
	case "file":
		var ignored Module
		ignored.Files = map[int]string{}
		p.file(&ignored)
	case "visible", "extern", "weak", "common":
		p.fail(".%s is for declarations of the module", p.tok.text)
	default:
		p.variableList(Internal, func(v *Variable) { b.Statements = append(b.Statements, v) })
	}
}

// loc reads .loc file line column [, function_name label [+ n], inlined_at
// file line column], and no more than one line.
func (p *parser) loc() *Loc {
	x := slab(&p.locs, 64)
	x.PTXLine = p.tok.line
	p.advance()
	p.locPosition(x)
	if !p.accept(',') {
		return x
	}
	if p.tok.kind != tokenIdent || p.tok.text != "function_name" {
		p.fail("expected function_name, found %s", p.found())
	}
	p.advance()
	x.FunctionName = p.ident("a label")
	x.FunctionOffset = int(p.offset())
	p.expect(',')
	if p.tok.kind != tokenIdent || p.tok.text != "inlined_at" {
		p.fail("expected inlined_at, found %s", p.found())
	}
	p.advance()
	x.InlinedAt = slab(&p.locs, 64)
	x.InlinedAt.PTXLine = x.PTXLine
	p.locPosition(x.InlinedAt)
	return x
}

func (p *parser) locPosition(x *Loc) {
	x.File = p.number("file number")
	x.Line = p.number("line")
	x.Column = p.number("column")
}

func (p *parser) instructionOrLabel(b *Block) {
	i := slab(&p.instructions, 128)
	if p.accept('@') {
		i.Guard.Negated = p.accept('!')
		i.Guard.Name = p.ident("a predicate")
	}
	// ptxas passes a backslash in front of an opcode.
	p.accept('\\')
	first := p.tok
	name := p.ident("an opcode")
	if p.tok.kind == ':' {
		if i.Guard.Name != "" || name == "_" {
			p.fail("a label cannot %s", map[bool]string{true: "be called _", false: "have a guard"}[name == "_"])
		}
		p.advance()
		b.Statements = append(b.Statements, p.label(first))
		return
	}
	i.Line = int32(first.line)
	i.Column = p.column(first.at)
	i.Mnemonic = p.mnemonic(name, first.at)
	i.Operands = p.instructionOperands(name)
	i.Text = p.lex.src[first.at:p.prevEnd]
	p.expect(';')
	b.Statements = append(b.Statements, i)
}

// label makes a label, or the target list that it names.
func (p *parser) label(name token) Statement {
	if p.tok.kind == tokenDot {
		switch p.tok.text {
		case "branchtargets":
			return p.targets(BranchTargets, name)
		case "calltargets":
			return p.targets(CallTargets, name)
		case "callprototype":
			return p.prototype(name)
		}
	}
	l := slab(&p.labels, 32)
	l.Line, l.Name = name.line, name.text
	return l
}

func (p *parser) targets(kind TargetsKind, label token) *Targets {
	x := &Targets{Line: label.line, Kind: kind, Label: label.text}
	p.advance()
	for {
		x.Names = append(x.Names, p.ident("a name"))
		if !p.accept(',') {
			break
		}
	}
	p.expect(';')
	return x
}

// prototype reads .callprototype (returns) _ (parameters) directives;
func (p *parser) prototype(label token) *Targets {
	x := &Targets{Line: label.line, Kind: CallPrototype, Label: label.text}
	f := &Function{Line: label.line}
	p.advance()
	if p.tok.kind == '(' {
		f.Returns = p.parameters(false, true)
	}
	if f.Name = p.ident("\"_\""); f.Name != "_" {
		p.fail("a prototype's name is \"_\", not %s", f.Name)
	}
	if p.tok.kind == '(' {
		f.Params = p.parameters(false, true)
	}
	p.directives(f)
	p.expect(';')
	x.Prototype = f
	return x
}

// mnemonic reads the modifiers after an opcode. Spellings are shared: a module
// has thousands of instructions but few hundred mnemonics.
func (p *parser) mnemonic(op string, at int) *Mnemonic {
	p.modifiers = p.modifiers[:0]
	end := p.prevEnd
	for p.tok.kind == tokenDot {
		p.modifiers = append(p.modifiers, p.tok.text)
		p.advance()
		end = p.prevEnd
	}
	text := p.lex.src[at:end]
	m := p.mnemonics[text]
	if m == nil {
		m = &Mnemonic{Op: op, Modifiers: slices.Clone(p.modifiers)}
		p.mnemonics[text] = m
	}
	return m
}
