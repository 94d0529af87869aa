// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import "strings"

// MaxDepth is how deep blocks, braces and expressions may nest.
const MaxDepth = 256

// Parse reads a module.
//
// Errors: a [*SyntaxError].
func Parse(text string) (m *Module, err error) {
	defer recoverSyntax(&err)
	p := newParser(text)
	return p.module(), nil
}

// recoverSyntax turns the panic that lexer and parser stop with into an error.
func recoverSyntax(err *error) {
	switch e := recover().(type) {
	case nil:
	case *SyntaxError:
		*err = e
	default:
		panic(e)
	}
}

// parser is a recursive descent over tokens. Instructions, operands and labels
// come from slabs: a text has thousands of them.
type parser struct {
	lex   lexer
	tok   token
	tree  *Module
	depth int
	// prevEnd is where the token before tok ended.
	prevEnd int
	// lineStart is where the line of the byte searched begins: see column.
	lineStart, searched int

	mnemonics    map[string]*Mnemonic
	instructions []Instruction
	operands     []Operand
	locs         []Loc
	labels       []Label
	variables    []Variable
	modifiers    []string
	// skipBodies leaves Body of functions empty.
	skipBodies bool
	// debug takes the sections of a module, which are skipped if it is nil.
	debug *debugSections
	// scratch is a stack of operands whose number is not known yet.
	scratch []Operand
}

func newParser(text string) *parser {
	p := &parser{lex: lexer{src: text, line: 1}, mnemonics: map[string]*Mnemonic{}}
	if strings.HasPrefix(text, "\ufeff") {
		// Editors on Windows begin a file with this mark.
		p.lex.pos = len("\ufeff")
	}
	p.advance()
	return p
}

// slab takes one element from a chunk, and a new chunk when it is used up.
func slab[T any](chunk *[]T, size int) *T {
	if len(*chunk) == 0 {
		*chunk = make([]T, size)
	}
	x := &(*chunk)[0]
	*chunk = (*chunk)[1:]
	return x
}

func (p *parser) advance() {
	p.prevEnd = p.lex.pos
	p.lex.next(&p.tok)
}

// column counts bytes from 1. Whoever asks goes forward in the text, so that a
// line of megabytes is not searched for its beginning for each instruction in it.
func (p *parser) column(at int) int32 {
	if i := strings.LastIndexByte(p.lex.src[p.searched:at], '\n'); i >= 0 {
		p.lineStart = p.searched + i + 1
	}
	p.searched = at
	return int32(at - p.lineStart + 1)
}

func (p *parser) fail(format string, args ...any) {
	p.lex.fail(p.tok.at, format, args...)
}

// found describes the current token for a message.
func (p *parser) found() string {
	switch p.tok.kind {
	case tokenEOF:
		return "the end of the text"
	case tokenDot:
		return "\"." + p.tok.text + "\""
	}
	return "\"" + p.tok.text + "\""
}

func (p *parser) enter() {
	if p.depth++; p.depth > MaxDepth {
		p.fail("nested deeper than %d", MaxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

// accept takes the current token if it is the character c.
func (p *parser) accept(c tokenKind) bool {
	if p.tok.kind != c {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(c tokenKind) {
	if p.tok.kind != c {
		p.fail("expected %q, found %s", string(rune(c)), p.found())
	}
	p.advance()
}

func (p *parser) ident(what string) string {
	if p.tok.kind != tokenIdent {
		p.fail("expected %s, found %s", what, p.found())
	}
	name := p.tok.text
	p.advance()
	return name
}

// newName reads a name that is declared: "_" is none.
func (p *parser) newName(what string) string {
	if p.tok.kind == tokenIdent && p.tok.text == "_" {
		p.fail("expected %s, found %s", what, p.found())
	}
	return p.ident(what)
}

func (p *parser) acceptDot(name string) bool {
	if p.tok.kind != tokenDot || p.tok.text != name {
		return false
	}
	p.advance()
	return true
}

// size reads an integer of at most most. As ptxas has it, directives take no
// expressions.
func (p *parser) size(what string, most uint64) uint64 {
	at := p.tok.at
	if p.tok.kind != tokenNumber && (p.tok.kind != tokenIdent || p.tok.text != "WARP_SZ") {
		p.fail("%s must be an integer from 0 to %d, found %s", what, most, p.found())
	}
	return p.checkSize(at, p.unary(), what, most)
}

func (p *parser) checkSize(at int, lit Literal, what string, most uint64) uint64 {
	if !lit.Integer() || lit.Bits > most {
		p.lex.fail(at, "%s must be an integer from 0 to %d, got %s", what, most, lit)
	}
	return lit.Bits
}

func (p *parser) number(what string) int { return int(p.size(what, 1<<31-1)) }
