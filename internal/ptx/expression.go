// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import "math"

// warpSize is the predefined constant WARP_SZ.
const warpSize = 32

// Binary operators by precedence, as in C.
//
// PTX ISA, "Constant Expressions".
var precedence = map[string]int{
	"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6,
	"<": 7, "<=": 7, ">": 7, ">=": 7, "<<": 8, ">>": 8,
	"+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}

// constant reads and folds a constant expression.
func (p *parser) constant() Literal {
	// Nearly all are a number alone.
	if p.tok.kind == tokenNumber && !p.operatorFollows() {
		return p.numberToken()
	}
	p.enter()
	defer p.leave()
	cond := p.binary(1)
	if !p.accept('?') {
		return cond
	}
	if !cond.Integer() {
		p.fail("a condition must be an integer, got %s", cond)
	}
	yes := p.constant()
	p.expect(':')
	no := p.constant()
	if yes.Integer() != no.Integer() {
		p.fail("? chooses between two integers or two fractions")
	}
	if truth(cond) {
		return yes
	}
	return no
}

// operatorFollows looks one character past the current number.
func (p *parser) operatorFollows() bool {
	i := p.lex.pos
	for i < len(p.lex.src) && p.lex.src[i] == ' ' {
		i++
	}
	if i == len(p.lex.src) {
		return false
	}
	switch p.lex.src[i] {
	case ',', ';', ']', '}', ')', '\n':
		return false
	}
	return true
}

func (p *parser) numberToken() Literal {
	lit, ok := parseNumber(p.tok.text)
	if !ok {
		p.fail("%q is not a number", p.tok.text)
	}
	p.advance()
	return lit
}

// operator returns the binary operator at the current token without taking it.
func (p *parser) operator() string {
	if p.tok.kind < tokenPunct {
		return ""
	}
	src, at := p.lex.src, p.tok.at
	if at+2 <= len(src) && precedence[src[at:at+2]] > 0 {
		return src[at : at+2]
	}
	if precedence[p.tok.text] > 0 {
		return p.tok.text
	}
	return ""
}

func (p *parser) binary(least int) Literal {
	left := p.unary()
	for {
		op := p.operator()
		if op == "" || precedence[op] < least {
			return left
		}
		at := p.tok.at
		for range op {
			p.advance()
		}
		p.enter()
		right := p.binary(precedence[op] + 1)
		p.leave()
		result, msg := fold(op, left, right)
		if msg != "" {
			p.lex.fail(at, "%s", msg)
		}
		left = result
	}
}

func (p *parser) unary() Literal {
	p.enter()
	defer p.leave()
	switch p.tok.kind {
	case '-':
		p.advance()
		return p.negate(p.unary())
	case '+':
		p.advance()
		return p.unary()
	case '!':
		p.advance()
		return boolean(!truth(p.integerAfter("!")))
	case '~':
		p.advance()
		return Literal{Kind: LiteralUnsigned, Bits: ^p.integerAfter("~").Bits}
	case '(':
		p.advance()
		if p.tok.kind == tokenDot && (p.tok.text == "s64" || p.tok.text == "u64") {
			return p.cast()
		}
		lit := p.constant()
		p.expect(')')
		return lit
	case tokenIdent:
		if p.tok.text == "WARP_SZ" {
			p.advance()
			return Literal{Bits: warpSize}
		}
	case tokenNumber:
		return p.numberToken()
	case tokenDot:
		if class[p.tok.text[0]]&classDigit != 0 {
			p.lex.fraction(&p.tok)
			return p.numberToken()
		}
	}
	p.fail("expected a constant, found %s", p.found())
	return Literal{}
}

func (p *parser) integerAfter(op string) Literal {
	lit := p.unary()
	if !lit.Integer() {
		p.fail("%s needs an integer", op)
	}
	return lit
}

// cast reads what follows "(" in (.s64)x and (.u64)x.
func (p *parser) cast() Literal {
	kind := LiteralInt
	if p.tok.text == "u64" {
		kind = LiteralUnsigned
	}
	p.advance()
	p.expect(')')
	return Literal{Kind: kind, Bits: p.integerAfter("a cast").Bits}
}

func truth(l Literal) bool { return l.Bits != 0 }

func boolean(b bool) Literal {
	if b {
		return Literal{Bits: 1}
	}
	return Literal{}
}

func (p *parser) negate(l Literal) Literal {
	switch l.Kind {
	case LiteralF32:
		p.fail("%s cannot be negated: set its first bit", l)
	case LiteralF64:
		l.Bits ^= 1 << 63
	default:
		l.Bits = -l.Bits
	}
	return l
}

// fold computes a op b; msg says why it cannot.
//
// PTX ISA, "Summary of Constant Expression Evaluation Rules". Like ptxas, it
// takes % as one of unsigned integers, and six bits of a shift's distance.
func fold(op string, a, b Literal) (lit Literal, msg string) {
	switch {
	case a.Kind == LiteralF64 && b.Kind == LiteralF64:
		return foldFloat(op, a.Float64(), b.Float64())
	case !a.Integer() || !b.Integer():
		return lit, op + " needs two integers or two decimal fractions"
	}
	unsigned := a.Kind == LiteralUnsigned || b.Kind == LiteralUnsigned || op == "%"
	switch op {
	case "||":
		return boolean(truth(a) || truth(b)), ""
	case "&&":
		return boolean(truth(a) && truth(b)), ""
	case "==":
		return boolean(a.Bits == b.Bits), ""
	case "!=":
		return boolean(a.Bits != b.Bits), ""
	case "<", "<=", ">", ">=":
		x, y := a.Bits, b.Bits
		if !unsigned {
			// Flipping the sign bits orders signed values as unsigned ones.
			x, y = x^1<<63, y^1<<63
		}
		return boolean(ordered(op, x, y)), ""
	case "<<", ">>":
		return Literal{Kind: a.Kind, Bits: shift(op, a, b.Bits%64)}, ""
	}
	kind := LiteralInt
	if unsigned {
		kind = LiteralUnsigned
	}
	bits, ok := arithmetic(op, a.Bits, b.Bits, unsigned)
	if !ok {
		return lit, "division by zero"
	}
	return Literal{Kind: kind, Bits: bits}, ""
}

func ordered[T uint64 | float64](op string, x, y T) bool {
	switch op {
	case "<":
		return x < y
	case "<=":
		return x <= y
	case ">":
		return x > y
	}
	return x >= y
}

func shift(op string, a Literal, n uint64) uint64 {
	switch {
	case op == "<<":
		return a.Bits << n
	case a.Kind == LiteralUnsigned:
		return a.Bits >> n
	}
	return uint64(int64(a.Bits) >> n)
}

func arithmetic(op string, x, y uint64, unsigned bool) (bits uint64, ok bool) {
	switch op {
	case "|":
		return x | y, true
	case "^":
		return x ^ y, true
	case "&":
		return x & y, true
	case "+":
		return x + y, true
	case "-":
		return x - y, true
	case "*":
		return x * y, true
	}
	switch {
	case y == 0:
		return 0, false
	case op == "/" && unsigned:
		return x / y, true
	case op == "/":
		return uint64(int64(x) / int64(y)), true
	}
	return x % y, true
}

func foldFloat(op string, x, y float64) (lit Literal, msg string) {
	var f float64
	switch op {
	case "+":
		f = x + y
	case "-":
		f = x - y
	case "*":
		f = x * y
	case "/":
		f = x / y
	case "<", "<=", ">", ">=":
		return boolean(ordered(op, x, y)), ""
	case "==":
		return boolean(x == y), ""
	case "!=":
		return boolean(x != y), ""
	default:
		return lit, op + " needs integers"
	}
	return Literal{Kind: LiteralF64, Bits: math.Float64bits(f)}, ""
}
