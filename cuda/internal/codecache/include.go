// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"regexp"
	"strings"
)

// include is one file that a text may include.
type include struct {
	name   string
	quoted bool // "name": looked for beside the text first
}

var splice = regexp.MustCompile(`\\[ \t]*\r?\n`)

// includes lists what a text may include. It may list more than the compiler
// includes, since conditions are not evaluated, but never less. isKnown is false
// if only the compiler can tell, or if the text compiles to something else each
// time.
func includes(text string) (list []include, isKnown bool) {
	if strings.Contains(text, "??=") || strings.Contains(text, "??/") {
		return nil, false // trigraphs are on or off, by the language's version
	}
	s := scanner{text: splice.ReplaceAllString(text, ""), known: true, seen: map[include]bool{}}
	s.isSpliced = len(s.text) != len(text)
	s.scan()
	return s.list, s.known
}

// scanner goes through a text as the preprocessor does, as far as needed to tell
// directives from comments and strings.
type scanner struct {
	text      string
	at        int
	isSpliced bool
	list      []include
	known     bool
	seen      map[include]bool
	directive string // the one of this line
}

// scan goes to the end, or to what makes the answer unknown.
func (s *scanner) scan() {
	isFirst := true // in its line
	for s.known && s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\n':
			isFirst, s.directive = true, ""
			s.at++
			continue
		case isBlank(c):
			s.at++
			continue
		case s.comment():
			continue
		case isFirst && (c == '#' || strings.HasPrefix(s.text[s.at:], "%:")):
			s.begin()
		case isWord(c):
			s.word(isFirst)
		case c == '"' || c == '\'':
			s.quoted(c)
		default:
			s.at++
		}
		isFirst = false
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isWord is true also for what is not ASCII, which may be in identifiers.
func isWord(c byte) bool {
	return c == '_' || c == '$' || isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}

// comment skips a comment, if there is one here.
func (s *scanner) comment() bool {
	rest := s.text[s.at:]
	var end string
	switch {
	case strings.HasPrefix(rest, "//"):
		end = "\n"
	case strings.HasPrefix(rest, "/*"):
		end = "*/"
	default:
		return false
	}
	n := strings.Index(rest[2:], end)
	switch {
	case n < 0:
		s.at = len(s.text)
	case end == "\n":
		s.at += 2 + n // the line's end is the scanner's
	default:
		s.at += 2 + n + 2
	}
	return true
}

// blanks skips what may be between the parts of a directive.
func (s *scanner) blanks() {
	for s.at < len(s.text) {
		if isBlank(s.text[s.at]) {
			s.at++
		} else if !s.comment() {
			return
		}
	}
}

// begin reads a directive's name, and what it includes.
func (s *scanner) begin() {
	s.at++
	if s.text[s.at-1] == '%' {
		s.at++
	}
	s.blanks()
	from := s.at
	for s.at < len(s.text) && isWord(s.text[s.at]) {
		s.at++
	}
	s.directive = s.text[from:s.at]
	switch s.directive {
	case "include", "include_next", "import", "embed":
		s.operand()
	case "define":
		s.blanks()
		line, _, _ := strings.Cut(s.text[s.at:], "\n")
		if another := anotherName.FindStringSubmatch(line); another != nil && (another[3] == "" || another[3] == another[1]) {
			s.at += len(another[0])
		}
	}
}

// operand reads "name" or <name>.
func (s *scanner) operand() {
	s.blanks()
	if s.at < len(s.text) {
		end := map[byte]string{'"': "\"", '<': ">"}[s.text[s.at]]
		name, _, found := strings.Cut(s.text[s.at+1:], end)
		if end != "" && found && !strings.Contains(name, "\n") {
			s.add(include{name, end == "\""})
			s.at += 1 + len(name) + 1
			return
		}
	}
	line, _, _ := strings.Cut(s.text[s.at:], "\n")
	files := thrustFiles(line)
	for _, name := range files {
		s.add(include{name, false})
	}
	s.known = files != nil // else it is another macro
}

func (s *scanner) add(i include) {
	if !s.seen[i] {
		s.seen[i] = true
		s.list = append(s.list, i)
	}
}

// word reads an identifier or a number, and the string that it is a prefix of.
func (s *scanner) word(isFirst bool) {
	from := s.at
	isNumber := isDigit(s.text[from])
	for s.at < len(s.text) && (isWord(s.text[s.at]) || isNumber && s.separator()) {
		s.at++
	}
	word := s.text[from:s.at]
	if asksForFile(word) {
		s.asked()
		return
	}
	switch word {
	case "__DATE__", "__TIME__", "__TIMESTAMP__":
		s.known = false
	case "import", "export":
		s.known = !isFirst // of a module of C++20
	case "R", "LR", "uR", "UR", "u8R":
		if s.at < len(s.text) && s.text[s.at] == '"' {
			s.raw()
		}
	}
}

// asked reads what __has_include asks for.
func (s *scanner) asked() {
	s.blanks()
	if s.at < len(s.text) && s.text[s.at] == '(' { // else only its name is asked for
		s.at++
		s.operand()
	}
	s.known = s.known && s.directive != "define"
}

// separator reports whether there is a quote between digits here.
func (s *scanner) separator() bool {
	return s.text[s.at] == '\'' && s.at+1 < len(s.text) && isWord(s.text[s.at+1])
}

// quoted skips a string or a character, which end with their line.
func (s *scanner) quoted(quote byte) {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case quote:
			s.at++
			return
		case '\n':
			return
		}
	}
}

// raw skips a raw string. In one, a backslash before a line's end stays, which
// has been removed here.
func (s *scanner) raw() {
	mark, rest, found := strings.Cut(s.text[s.at+1:], "(")
	if !found || s.isSpliced {
		s.known = false
		return
	}
	content, _, found := strings.Cut(rest, ")"+mark+"\"")
	s.known = found
	s.at += 1 + len(mark) + 1 + len(content) + 1 + len(mark) + 1
}
