// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

// Package cxxname compares the names that people write in C++ with the symbols
// that compilers make of them: "f<float,4>" is _Z1fIfLi4EEvPT_, whatever blanks
// it has and whichever of their names its types are called by.
//
// Nothing here is a compiler: a type's name that a program defines, and the
// value of an enumerator, are what they are called.
package cxxname

import (
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// longest is how many bytes of a name are worth reading, mangled or not. What is
// longer is only ever the name of itself: demangling goes one call deeper with
// each letter of _Z1fPPPP…, and Go ends a process whose stack is a gigabyte; the
// comparison of spellings does so with each const inside another. A few letters
// can also say "twice that" again and again.
const (
	maxLog  = 14
	longest = 1 << maxLog
)

// Readable returns what a symbol is called in C++, with its template arguments
// and its parameters: "ns::f<float, 4>(float*)". A symbol that is not mangled, or
// very long, stays as it is.
func Readable(symbol string) string {
	if len(symbol) > longest {
		return symbol
	}
	full, err := demangle.ToString(symbol, demangle.LLVMStyle, demangle.MaxLength(maxLog))
	if err != nil {
		return symbol
	}
	return strings.TrimPrefix(full, "void ")
}

// Plain returns the name of a symbol or of a spelling without result,
// parameters and template arguments: "ns::f".
func Plain(name string) string {
	head, _ := divide(elide(tokenize(Readable(name))))
	head = qualified(head)
	var b strings.Builder
	depth := 0
	for _, t := range head {
		depth += nesting(t)
		if depth == 0 && t != ">" {
			b.WriteString(t)
		}
	}
	return b.String()
}

// Find returns those of the symbols that a name is a spelling of. A name with
// parameters is that of at most one function; without them it is that of all
// that are overloaded.
func Find(symbols []string, name string) (found []string) {
	if slices.Contains(symbols, name) {
		return []string{name}
	}
	asked := parse(name)
	for _, symbol := range symbols {
		if asked.means(parse(Readable(symbol))) && !slices.Contains(found, symbol) {
			found = append(found, symbol)
		}
	}
	return found
}

// Same reports whether two spellings are of the same name.
func Same(a, b string) bool { return parse(a) == parse(b) }

// means reports whether whoever writes s may mean other, which is complete.
func (s spelling) means(other spelling) bool {
	return s.name != "" && (s.name == other.name || s.name == other.short) && (!s.hasParams || s.params == other.params)
}

// ReadableText replaces all mangled names in a text by what they are called in
// C++. What a compiler calls the parameters of a mangled kernel is cut to their
// numbers.
func ReadableText(text string) string {
	if !strings.Contains(text, "_Z") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && isWord(text[end]) {
			end++
		}
		if end == i {
			b.WriteByte(text[i])
			i++
			continue
		}
		b.WriteString(readableWord(text[i:end]))
		i = end
	}
	return b.String()
}

func readableWord(word string) string {
	symbol, sentence := word, ""
	if at := strings.IndexByte(word, '.'); at >= 0 { // a mangled name has none, but a sentence ends in one
		symbol, sentence = word[:at], word[at:]
	}
	const param = "_param_"
	at := strings.LastIndex(symbol, param)
	if at > 0 && Readable(symbol[:at]) != symbol[:at] {
		return symbol[at+1:] + sentence
	}
	return Readable(symbol) + sentence
}
