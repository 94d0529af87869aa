// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

// instructionOperands reads the operands up to the semicolon.
func (p *parser) instructionOperands(op string) []Operand {
	if p.tok.kind == ';' {
		return nil
	}
	mark := len(p.scratch)
	for {
		var x Operand
		// Elsewhere a parenthesis begins a constant expression.
		if op == "call" && p.tok.kind == '(' {
			x = p.list(OperandList, ')')
		} else {
			x = p.operand()
		}
		p.scratch = append(p.scratch, x)
		if !p.accept(',') {
			return p.take(mark)
		}
	}
}

// take moves the scratch operands from mark on into a slab.
func (p *parser) take(mark int) []Operand {
	n := len(p.scratch) - mark
	if n == 0 {
		return nil
	}
	if n > len(p.operands) {
		p.operands = make([]Operand, max(256, n))
	}
	list := p.operands[:n:n]
	p.operands = p.operands[n:]
	copy(list, p.scratch[mark:])
	p.scratch = p.scratch[:mark]
	return list
}

func (p *parser) operand() Operand {
	p.enter()
	defer p.leave()
	switch p.tok.kind {
	case tokenIdent:
		if p.tok.text != "WARP_SZ" {
			return p.nameOrPair()
		}
	case '{':
		return p.list(OperandVector, '}')
	case '[':
		return p.bracketed()
	case '!':
		// Before a name it negates a predicate, before a number it is C's.
		save, tok := p.lex, p.tok
		p.advance()
		if p.tok.kind == tokenIdent && p.tok.text != "WARP_SZ" {
			x := p.nameOrPair()
			x.Negated = true
			return x
		}
		p.lex, p.tok = save, tok
	case '-':
		save, tok := p.lex, p.tok
		p.advance()
		if p.tok.kind == tokenIdent && p.tok.text != "WARP_SZ" {
			x := p.nameOrPair()
			x.Minus = true
			return x
		}
		p.lex, p.tok = save, tok
	}
	return Operand{Kind: OperandImmediate, Value: p.constant()}
}

// list reads a bracketed, comma-separated list of operands.
func (p *parser) list(kind OperandKind, closing tokenKind) Operand {
	p.advance()
	mark := len(p.scratch)
	for p.tok.kind != closing {
		if len(p.scratch) > mark {
			p.expect(',')
		}
		x := p.operand()
		p.scratch = append(p.scratch, x)
	}
	p.advance()
	return Operand{Kind: kind, Elems: p.take(mark)}
}

// nameOrPair reads a name or _, alone or as the first of p|q.
func (p *parser) nameOrPair() Operand {
	x := p.name()
	if p.tok.kind != '|' {
		return x
	}
	p.advance()
	if p.tok.kind != tokenIdent {
		p.fail("expected a second destination, found %s", p.found())
	}
	mark := len(p.scratch)
	p.scratch = append(p.scratch, x, p.name())
	return Operand{Kind: OperandPair, Elems: p.take(mark)}
}

func (p *parser) name() Operand {
	x := Operand{Name: p.tok.text}
	p.advance()
	if x.Name == "_" {
		return Operand{Kind: OperandSink}
	}
	switch p.tok.kind {
	case tokenDot:
		x.Component = p.tok.text
		p.advance()
	case '+':
		x.Value.Bits = uint64(p.offset())
	case '[':
		p.advance()
		x.Kind = OperandElement
		if p.tok.kind == tokenIdent && p.tok.text != "WARP_SZ" {
			mark := len(p.scratch)
			p.scratch = append(p.scratch, p.operand())
			x.Elems = p.take(mark)
		} else if x.Value = p.constant(); !x.Value.Integer() {
			p.fail("an index must be an integer, got %s", x.Value)
		}
		p.expect(']')
	}
	return x
}

// bracketed reads an address: [name+offset], [number], and the longer forms of
// texture and bulk-copy instructions.
func (p *parser) bracketed() Operand {
	p.advance()
	x := Operand{Kind: OperandAddress}
	if p.tok.kind == tokenIdent && p.tok.text != "WARP_SZ" {
		base := p.name()
		if base.Kind != OperandName || base.Component != "" {
			p.fail("%q cannot be an address", base.Name)
		}
		x.Name, x.Value = base.Name, base.Value
	} else if p.tok.kind != '{' {
		x.Value = p.constant()
		if !x.Value.Integer() {
			p.fail("an address must be an integer, got %s", x.Value)
		}
	}
	mark := len(p.scratch)
	for p.tok.kind != ']' {
		if p.tok.kind != '{' || len(p.scratch) > mark {
			p.expect(',')
		}
		e := p.operand()
		p.scratch = append(p.scratch, e)
	}
	p.advance()
	x.Elems = p.take(mark)
	if p.tok.kind == tokenDot {
		x.Component = p.tok.text
		p.advance()
	}
	return x
}
