// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import "strings"

// tokenKind is the kind of a token; punctuation is its own byte.
type tokenKind uint8

const (
	tokenEOF    tokenKind = iota
	tokenIdent            // add, %r1, $L__BB0_1, _
	tokenDot              // .f32, .L1::evict_last, with the dot left out of text
	tokenNumber           // 1, 0x1f, 0f3F800000, 1.5e3
	tokenString           // "...", with the quotes left out of text
	// Punctuation follows from here: the kind is the character.
	tokenPunct = ' '
)

// token is a piece of the text; at is the offset of its first byte, line the
// number of its line.
type token struct {
	kind tokenKind
	at   int
	line int
	text string
}

// lexer cuts src into tokens, one ahead of the parser.
type lexer struct {
	src  string
	pos  int
	line int
}

// Character classes of PTX ISA, "Identifiers".
const (
	classSpace = 1 << iota
	classFirst // may begin an identifier
	classFollow
	classDigit
)

var class = func() (c [256]uint8) {
	for i := range 256 {
		b := byte(i)
		switch {
		case b == ' ' || b == '\t' || b == '\r' || b == '\v' || b == '\f':
			c[i] = classSpace
		case b >= '0' && b <= '9':
			c[i] = classFollow | classDigit
		case b|0x20 >= 'a' && b|0x20 <= 'z', b == '_', b == '$':
			c[i] = classFirst | classFollow
		case b == '%':
			c[i] = classFirst
		case b >= 0x80:
			// Beyond the ISA, but clang and newer nvcc pass UTF-8 names on.
			c[i] = classFirst | classFollow
		}
	}
	return c
}()

// next reads a token.
func (l *lexer) next(t *token) {
	l.skipBlank()
	start := l.pos
	t.at, t.line = start, l.line
	if start >= len(l.src) {
		t.kind, t.text = tokenEOF, ""
		return
	}
	c := l.src[start]
	switch {
	case class[c]&classFirst != 0 && (c != '%' || start+1 < len(l.src) && class[l.src[start+1]]&classFollow != 0):
		// A lone % is the operator.
		l.pos = l.follow(start + 1)
		t.kind, t.text = tokenIdent, l.src[start:l.pos]
	case c == '.' && start+1 < len(l.src) && class[l.src[start+1]]&classFollow != 0:
		l.dotted(t, start+1)
	case class[c]&classDigit != 0:
		l.number(t)
	case c == '"':
		l.quoted(t)
	default:
		l.pos++
		if c < tokenPunct || c == 0x7f {
			l.fail(start, "unexpected character %q", c)
		}
		t.kind, t.text = tokenKind(c), l.src[start:l.pos]
	}
}

func (l *lexer) fail(at int, format string, args ...any) {
	panic(newSyntaxError(l.src, at, format, args...))
}

// follow returns the end of the identifier characters from i.
func (l *lexer) follow(i int) int {
	for i < len(l.src) && class[l.src[i]]&classFollow != 0 {
		i++
	}
	return i
}

// dotted reads a directive or modifier, which may have parts joined by "::".
func (l *lexer) dotted(t *token, start int) {
	end := l.follow(start)
	for end+2 < len(l.src) && l.src[end] == ':' && l.src[end+1] == ':' && class[l.src[end+2]]&classFollow != 0 {
		end = l.follow(end + 2)
	}
	l.pos = end
	t.kind, t.text = tokenDot, l.src[start:end]
}

// number reads the characters of a numeric literal; parseNumber judges them.
func (l *lexer) number(t *token) {
	start := l.pos
	end := l.follow(start)
	text := l.src[start:end]
	if !strings.HasPrefix(text, "0x") && !strings.HasPrefix(text, "0X") {
		if end < len(l.src) && l.src[end] == '.' {
			end = l.follow(end + 1)
		}
		if e := l.src[end-1] | 0x20; e == 'e' && end < len(l.src) && (l.src[end] == '+' || l.src[end] == '-') {
			end = l.follow(end + 1)
		}
	}
	l.pos = end
	t.kind, t.text = tokenNumber, l.src[start:end]
}

// fraction rereads ".5", which is like a modifier, as a number.
func (l *lexer) fraction(t *token) {
	l.pos = t.at + 1
	l.number(t)
	t.text = l.src[t.at:l.pos]
}

func (l *lexer) quoted(t *token) {
	start := l.pos + 1
	for i := start; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case '"':
			l.pos = i + 1
			t.kind, t.text = tokenString, l.src[start:i]
			return
		case '\n':
			l.fail(l.pos, "string is not closed")
		}
	}
	l.fail(l.pos, "string is not closed")
}

// skipBlank passes white space, comments and preprocessor line markers.
func (l *lexer) skipBlank() {
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		switch {
		case c == '\n':
			l.line++
			l.pos++
		case c == '#' && l.lineMarker():
			l.skipLine()
		case class[c]&classSpace != 0:
			l.pos++
		case c == '/' && strings.HasPrefix(l.src[l.pos:], "//"):
			l.skipLine()
		case c == '/' && strings.HasPrefix(l.src[l.pos:], "/*"):
			end := strings.Index(l.src[l.pos+2:], "*/")
			if end < 0 {
				l.fail(l.pos, "comment is not closed")
			}
			l.line += strings.Count(l.src[l.pos:l.pos+2+end], "\n")
			l.pos += end + 4
		case c == 0 && strings.Trim(l.src[l.pos:], "\x00") == "":
			// NVRTC's size counts the terminator, and callers pass it on.
			l.pos = len(l.src)
		default:
			return
		}
	}
}

// lineMarker reports "# 12 "file"" or "#line 12", which a preprocessor leaves,
// and which ptxas takes behind other text too.
func (l *lexer) lineMarker() bool {
	rest := strings.TrimLeft(l.src[l.pos+1:], " \t")
	return strings.HasPrefix(rest, "line") || rest != "" && class[rest[0]]&classDigit != 0
}

func (l *lexer) skipLine() {
	if i := strings.IndexByte(l.src[l.pos:], '\n'); i >= 0 {
		l.pos += i
	} else {
		l.pos = len(l.src)
	}
}

// skipBody passes text up to and including the brace that closes the one
// already read, without making tokens.
func (l *lexer) skipBody(opened int) {
	depth := 1
	for l.pos < len(l.src) {
		switch l.src[l.pos] {
		case '\n':
			l.line++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				l.pos++
				return
			}
		case '"':
			var t token
			l.quoted(&t)
			continue
		case '/', '#':
			before := l.pos
			if l.skipBlank(); l.pos != before {
				continue
			}
		}
		l.pos++
	}
	l.fail(opened, "brace is not closed")
}
