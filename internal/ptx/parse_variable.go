// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

// maxBytes bounds sizes, so that later arithmetic cannot overflow.
const maxBytes = 1 << 40

// maxRange bounds the registers of one declaration.
const maxRange = 1 << 20

// variableList reads a declaration of one or more names up to its semicolon.
func (p *parser) variableList(linkage Linkage, add func(*Variable)) {
	head := p.declarationHead(linkage)
	if head.Space == SpaceReg && p.accept(';') {
		// ptxas lets a declaration declare nothing.
		return
	}
	for {
		v := slab(&p.variables, 16)
		*v = *head
		v.Line = p.tok.line
		v.Name = p.newName("a name")
		p.declarator(v)
		add(v)
		if !p.accept(',') {
			break
		}
	}
	p.expect(';')
}

// declarationHead reads everything in front of the name: space, alignment,
// vector, type, attributes, .ptr, in any order after the space.
func (p *parser) declarationHead(linkage Linkage) *Variable {
	v := &Variable{Line: p.tok.line, Linkage: linkage}
	if p.tok.kind != tokenDot {
		p.fail("expected a state space, found %s", p.found())
	}
	if p.acceptDot("align") {
		// Some write it in front of the space.
		v.Align = p.alignment()
	}
	v.Attributes = p.attributes()
	space, ok := spaceByName(p.tok.text)
	if !ok || p.tok.kind != tokenDot {
		p.fail("unknown directive .%s", p.tok.text)
	}
	v.Space = space
	p.advance()
	for p.tok.kind == tokenDot {
		p.declarationPart(v)
	}
	if v.Type == NoType {
		p.fail("expected a type, found %s", p.found())
	}
	return v
}

func (p *parser) declarationPart(v *Variable) {
	switch p.tok.text {
	case "align":
		p.advance()
		v.Align = p.alignment()
		return
	case "v2", "v4":
		if v.Type != NoType {
			p.fail(".%s stands before the type", p.tok.text)
		}
		v.Vector = p.tok.text[1] - '0'
	case "attribute":
		v.Attributes = append(v.Attributes, p.attributes()...)
		return
	case "ptr":
		p.advance()
		p.pointer(v)
		return
	default:
		t := TypeByName(p.tok.text)
		if t == NoType {
			p.fail("unknown type .%s", p.tok.text)
		}
		if v.Type != NoType {
			p.fail("second type .%s", p.tok.text)
		}
		v.Type = t
		p.checkType(v)
	}
	p.advance()
}

// checkType refuses types that a state space does not have.
func (p *parser) checkType(v *Variable) {
	switch t := v.Type; {
	case t == Pred && v.Space != SpaceReg:
		p.fail("a predicate must be in .reg, not .%s", v.Space)
	case t == Pred && v.Vector != 0:
		p.fail("predicates have no vectors")
	case t == BF16 || t == BF16x2 || t == TF32:
		p.fail("nothing can be declared .%s; its bits are .b%d", t, 8*t.Size())
	}
}

func (p *parser) alignment() uint32 {
	at := p.tok.at
	n := p.size("alignment", 1<<20)
	if n == 0 || n&(n-1) != 0 {
		p.lex.fail(at, "alignment must be a power of two, got %d", n)
	}
	return uint32(n)
}

// pointer reads what follows .ptr: an optional space and alignment.
func (p *parser) pointer(v *Variable) {
	v.Pointer = &Pointer{}
	if p.tok.kind == tokenDot {
		if s, ok := spaceByName(p.tok.text); ok {
			v.Pointer.Space = s
			p.advance()
		}
	}
	if p.acceptDot("align") {
		v.Pointer.Align = p.alignment()
	}
}

// declarator reads what follows the name: the range or dimensions, and the
// initialiser.
func (p *parser) declarator(v *Variable) {
	if p.accept('<') {
		v.Range = uint32(p.size("a register count", maxRange))
		p.expect('>')
	}
	bytes := uint64(max(v.Type.Size(), 1)) * uint64(max(v.Vector, 1))
	for p.tok.kind == '[' {
		at := p.tok.at
		p.advance()
		n := uint64(0)
		if p.tok.kind != ']' {
			// A constant expression, says the ISA; ptxas takes no operators here.
			size := p.constant()
			n = p.checkSize(at+1, size, "array size", 1<<32-1)
		}
		p.expect(']')
		v.Dims = append(v.Dims, uint32(n))
		if max(n, 1) > maxBytes/bytes { // the product may not fit 64 bits
			p.lex.fail(at, "%s is larger than %d bytes", v.Name, uint64(maxBytes))
		}
		bytes *= max(n, 1)
	}
	if v.Space == SpaceParam && len(v.Dims) == 0 && (v.Vector != 0 || v.Type == F16x2) {
		p.fail("%s: a parameter cannot be a vector, but an array of them", v.Name)
	}
	if v.Pointer == nil && p.tok.kind == tokenDot && p.tok.text == "ptr" {
		p.advance()
		p.pointer(v)
	}
	if p.tok.kind == '=' && v.Type >= TexRef {
		p.samplerState()
	}
	if p.accept('=') {
		init := p.initializer()
		v.Init = &init
	}
}

// samplerState skips { addr_mode_0 = wrap, ... }: no texture is ever sampled.
func (p *parser) samplerState() {
	p.advance()
	if p.tok.kind != '{' {
		p.fail("expected \"{\", found %s", p.found())
	}
	p.lex.skipBody(p.tok.at)
	p.advance()
}

// initializer reads a value, an address, or a braced list of them.
//
// PTX ISA, "Initializers".
func (p *parser) initializer() Init {
	p.enter()
	defer p.leave()
	switch {
	case p.accept('{'):
		list := Init{Kind: InitList}
		for p.tok.kind != '}' {
			list.Elems = append(list.Elems, p.initializer())
			if !p.accept(',') {
				break
			}
			if p.tok.kind == '}' {
				p.fail("expected an initial value, found %s", p.found())
			}
		}
		p.expect('}')
		return list
	case p.tok.kind == tokenIdent && p.tok.text != "WARP_SZ":
		return p.address()
	}
	value := p.constant()
	if !p.accept('(') {
		return Init{Value: value}
	}
	// The mask operator: 0xFF00(symbol) is the second byte of its address.
	x := p.address()
	x.Mask = value.Bits
	p.expect(')')
	return x
}

// address reads symbol, symbol+offset, generic(symbol)+offset.
func (p *parser) address() Init {
	x := Init{Kind: InitSymbol, Symbol: p.ident("a symbol")}
	if x.Symbol == "generic" && p.accept('(') {
		x.Generic = true
		x.Symbol = p.ident("a symbol")
		p.expect(')')
	}
	x.Offset = p.offset()
	return x
}

// offset reads +constant, if one is there, which may be negative: as ptxas,
// name-4 is an error and name+-4 is not. Whatever follows the first + is one
// expression: name+1<<3 is name+8.
func (p *parser) offset() int64 {
	if !p.accept('+') {
		return 0
	}
	at := p.tok.at
	lit := p.constant()
	if !lit.Integer() {
		p.lex.fail(at, "an offset must be an integer, got %s", lit)
	}
	return int64(lit.Bits)
}
