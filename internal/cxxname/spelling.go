// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package cxxname

import (
	"slices"
	"strconv"
	"strings"
)

// spelling is a name in one of the ways that C++ has to write it, brought to a
// form in which equal names are equal strings.
type spelling struct {
	name      string // without the parameters: "ns :: f < float , 4 >"
	short     string // the name, and without those of functions among the template arguments
	params    string // "( float * )"
	hasParams bool
}

// parse brings a name to its form. Anything is a spelling, though maybe of no
// name. A text that is too long to be read is that of itself.
func parse(text string) spelling {
	if len(text) > longest {
		return spelling{name: text}
	}
	tokens := casts(elide(tokenize(text)))
	head, params := divide(tokens)
	head = qualified(head)
	s := spelling{
		name:      strings.Join(normalize(addressed(head, false)), " "),
		short:     strings.Join(normalize(addressed(head, true)), " "),
		hasParams: params != nil,
	}
	if s.hasParams {
		s.params = strings.Join(normalize(params), " ")
		if s.params == "( void )" {
			s.params = "( )"
		}
	}
	return s
}

// tokenize divides text into words, numbers, characters in quotes, "::", and
// single signs. "(anonymous namespace)" is one token.
func tokenize(text string) (tokens []string) {
	const anonymous = "(anonymous namespace)"
	for i := 0; i < len(text); {
		end := i + 1
		switch c := text[i]; {
		case strings.HasPrefix(text[i:], anonymous):
			end = i + len(anonymous)
		case strings.HasPrefix(text[i:], "::"):
			end = i + 2
		case isWord(c):
			for end < len(text) && isWord(text[end]) {
				end++
			}
		case c == '\'':
			if n := strings.IndexByte(text[end:], '\''); n >= 0 {
				end += n + 1
			}
		case c <= ' ':
			i = end
			continue
		}
		tokens = append(tokens, text[i:end])
		i = end
	}
	return tokens
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c == '.' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// elide leaves out what one may write or not: scopes that a compiler adds, the
// kinds of types, the sign for "address of".
func elide(tokens []string) (kept []string) {
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		followed := i+1 < len(tokens) && tokens[i+1] == "::"
		switch {
		case followed && (t == "(anonymous namespace)" || isInline(t)):
			i++
		case t == "struct" || t == "class" || t == "enum" || t == "typename" || t == "__global__" || t == "__device__" || t == "__constant__":
		case t == "&" && len(kept) == 0:
		case t == "::" && (len(kept) == 0 || !isName(kept[len(kept)-1]) && kept[len(kept)-1] != ">"): // of the global scope
		default:
			kept = append(kept, t)
		}
	}
	return kept
}

// casts spells numbers of a type, which is what enumerators are in symbols, in one
// way: "f<Mode(1)>" and "f<static_cast<Mode>(1)>" are "f<(Mode)1>".
func casts(tokens []string) (kept []string) {
	for i := 0; i < len(tokens); i++ {
		kept = append(kept, tokens[i])
		if tokens[i] != "<" && tokens[i] != "," {
			continue
		}
		argument := tokens[i+1 : i+1+argumentLen(tokens[i+1:])]
		kind, number := castOf(argument)
		if kind == nil {
			continue
		}
		kept = append(append(append(append(kept, "("), kind...), ")"), number...)
		i += len(argument)
	}
	return kept
}

// castOf divides a template argument that is a number made to be of a type.
func castOf(argument []string) (kind, number []string) {
	open := slices.Index(argument, "(")
	if open < 1 || argument[len(argument)-1] != ")" {
		return nil, nil
	}
	kind, number = argument[:open], argument[open+1:len(argument)-1]
	if digits := len(number) - 1; digits < 0 || digits > 1 || !isNumber(number[digits]) || digits == 1 && number[0] != "-" {
		return nil, nil
	}
	if last := len(kind) - 1; last > 1 && kind[0] == "static_cast" && kind[1] == "<" && kind[last] == ">" {
		kind = kind[2:last]
	}
	return kind, number
}

// isInline reports whether a namespace is one of those that libraries put
// between their own and what is in it: cuda::std::__4::tuple.
func isInline(t string) bool {
	return len(t) > 2 && strings.HasPrefix(t, "__") && (t == "__cxx11" || isNumber(t[2:3])) || strings.HasPrefix(t, "_V_")
}

func isName(t string) bool { return t != "" && isWord(t[0]) && !isNumber(t) }

func isNumber(t string) bool { return t != "" && '0' <= t[0] && t[0] <= '9' }

// divide finds the list of parameters, at the end and outside of all brackets.
func divide(tokens []string) (head, params []string) {
	depth := 0
	for i, t := range tokens {
		if t == "(" && depth == 0 && i > 0 {
			return tokens[:i], tokens[i:]
		}
		depth += nesting(t)
	}
	return tokens, nil
}

// addressed leaves out what is written or not of a function whose address is a
// template argument: the sign for "address of" and the result's type, and in the
// short form the parameters. "g<&int f<int>(int)>" is "g<f<int>(int)>", and
// "g<f<int>>".
func addressed(tokens []string, short bool) (kept []string) {
	for i := 0; i < len(tokens); i++ {
		if tokens[i] != "&" || i == 0 || tokens[i-1] != "<" && tokens[i-1] != "," {
			kept = append(kept, tokens[i])
			continue
		}
		argument := tokens[i+1 : i+1+argumentLen(tokens[i+1:])]
		i += len(argument)
		if name, params := divide(argument); params != nil {
			argument = name[lastName(name):]
			if !short {
				argument = append(slices.Clone(argument), params...)
			}
		}
		kept = append(kept, addressed(argument, short)...)
	}
	return kept
}

// argumentLen is how many tokens the template argument has that tokens begin with.
func argumentLen(tokens []string) int {
	depth := 0
	for i, t := range tokens {
		if depth == 0 && (t == "," || nesting(t) < 0) {
			return i
		}
		depth += nesting(t)
	}
	return len(tokens)
}

// lastName is where the name begins that tokens end with, with its scopes and
// template arguments.
func lastName(tokens []string) int {
	begin := len(tokens)
	for begin > 0 {
		begin--
		if depth := nesting(tokens[begin]); depth < 0 {
			for begin > 0 && depth < 0 {
				begin--
				depth += nesting(tokens[begin])
			}
			begin = max(begin-1, 0)
		}
		if begin == 0 || tokens[begin-1] != "::" {
			break
		}
		begin--
	}
	return begin
}

// nesting is how many more brackets are open behind t.
func nesting(t string) int {
	switch t {
	case "(", "<", "[", "{":
		return 1
	case ")", ">", "]", "}":
		return -1
	}
	return 0
}

// qualified leaves out the result's type, which for kernels is void.
func qualified(head []string) []string {
	if len(head) > 1 && head[0] == "void" {
		return head[1:]
	}
	return head
}

// normalize spells types and numbers in one way: those that have several names,
// const behind what it is about, literals without suffix and cast.
func normalize(tokens []string) []string {
	var out []string
	for i := 0; i < len(tokens); {
		n, spelled := 1, tokens[i:i+1]
		switch t := tokens[i]; {
		case isCV(t):
			n, spelled = qualifiedType(tokens[i:])
		case integerWords[t]:
			n, spelled = integer(tokens[i:])
		case t == "std" && i+2 < len(tokens) && tokens[i+1] == "::" && aliases[tokens[i+2]] != "":
			n, spelled = 3, []string{aliases[tokens[i+2]]}
		case aliases[t] != "" && (i == 0 || tokens[i-1] != "::"):
			spelled = []string{aliases[t]}
		case t == "(":
			if cast := integerCast(tokens[i:]); cast > 0 {
				n, spelled = cast, nil
			}
		case isNumber(t) || t[0] == '\'' || t == "true" || t == "false":
			spelled = []string{literal(t)}
		}
		out = append(out, spelled...)
		i += n
	}
	return out
}

func isCV(t string) bool { return t == "const" || t == "volatile" }

// qualifiedType puts the const or volatile that tokens begin with behind the
// type that follows.
func qualifiedType(tokens []string) (n int, spelled []string) {
	for n < len(tokens) && isCV(tokens[n]) {
		n++
	}
	begin, depth := n, 0
	for n < len(tokens) {
		t := tokens[n]
		goesOn := depth > 0 || t == "::" || t == "<" ||
			isName(t) && !isCV(t) && (n == begin || tokens[n-1] == "::" || integerWords[t] && integerWords[tokens[n-1]])
		if !goesOn {
			break
		}
		depth += nesting(t)
		n++
	}
	spelled = append(normalize(tokens[begin:n]), tokens[:begin]...)
	return n, spelled
}

var integerWords = map[string]bool{"unsigned": true, "signed": true, "short": true, "long": true, "int": true, "char": true}

// integer gives the type that some words in any order are: "long unsigned int"
// is "unsigned long".
func integer(tokens []string) (n int, spelled []string) {
	count := map[string]int{}
	for n < len(tokens) && integerWords[tokens[n]] {
		count[tokens[n]]++
		n++
	}
	name := "int"
	switch {
	case count["char"] > 0:
		name = "char"
		if count["signed"] > 0 {
			name = "signed char"
		}
	case count["short"] > 0:
		name = "short"
	case count["long"] > 1:
		name = "long long"
	case count["long"] == 1 && n < len(tokens) && tokens[n] == "double":
		return n + 1, []string{"long double"}
	case count["long"] == 1:
		name = "long"
	}
	if count["unsigned"] > 0 {
		name = "unsigned " + name
	}
	return n, []string{name}
}

// integerCast measures a cast to an integer in front of a literal: the "(char)"
// of "(char)4". The type follows from the template.
func integerCast(tokens []string) int {
	n := 1
	for n < len(tokens) && integerWords[tokens[n]] {
		n++
	}
	behind := n + 1
	if n == 1 || behind >= len(tokens) || tokens[n] != ")" {
		return 0
	}
	if tokens[behind] == "-" && behind+1 < len(tokens) {
		behind++
	}
	if !isNumber(tokens[behind]) {
		return 0
	}
	return n + 1
}

// literal gives a number, in decimal; t itself if it is not an integer.
func literal(t string) string {
	switch {
	case t == "true":
		return "1"
	case t == "false":
		return "0"
	case len(t) == 3 && t[0] == '\'':
		return strconv.Itoa(int(t[1]))
	}
	digits := strings.ReplaceAll(t, "'", "")
	digits = strings.TrimRight(digits, "uUlLzZ")
	if v, err := strconv.ParseUint(digits, 0, 64); err == nil {
		return strconv.FormatUint(v, 10)
	}
	return t
}

// aliases are the names that CUDA's headers and the C++ library have for other
// types. A program's own are known to its compiler alone.
var aliases = map[string]string{
	"int8_t": "signed char", "int16_t": "short", "int32_t": "int", "int64_t": "long",
	"uint8_t": "unsigned char", "uint16_t": "unsigned short", "uint32_t": "unsigned int", "uint64_t": "unsigned long",
	"size_t": "unsigned long", "ptrdiff_t": "long", "uintptr_t": "unsigned long", "intptr_t": "long",
	"uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned int", "ulong": "unsigned long",
	"half": "__half", "half2": "__half2", "nv_half": "__half", "nv_half2": "__half2",
	"nv_bfloat16": "__nv_bfloat16", "nv_bfloat162": "__nv_bfloat162",
}
