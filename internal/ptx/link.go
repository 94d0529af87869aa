// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Part is one text to link, with a name for messages.
type Part struct{ Name, Text string }

// provided are the functions that the driver defines.
var provided = map[string]bool{"vprintf": true, "__assertfail": true, "malloc": true, "free": true}

// Link makes one module of several: what one declares .extern, another defines.
// What is internal to one keeps apart from what the others call so.
//
// Errors: of syntax, with the part's name; a symbol that is defined twice, or
// nowhere.
func Link(parts []Part) (string, error) {
	l := &linking{parts: parts, out: &Module{Files: map[int]string{}}, defined: map[string]definition{}, taken: map[string]bool{}}
	for i := range parts {
		if err := l.read(i); err != nil {
			return "", err
		}
	}
	if err := l.define(); err != nil {
		return "", err
	}
	if err := l.resolve(); err != nil {
		return "", err
	}
	l.emit()
	return l.out.String(), nil
}

type linking struct {
	parts   []Part
	modules []*Module
	out     *Module
	defined map[string]definition // by name, of all parts
	taken   map[string]bool       // the names of what is in modules
	words   map[string]bool       // whatever may be a name, of all parts; nil until it is asked for
}

// definition says where a symbol is defined.
type definition struct {
	part int
	item Item
	weak bool
}

// read parses a part, with its internal names made different from the names of
// the parts before it.
func (l *linking) read(i int) error {
	m, err := Parse(l.parts[i].Text)
	if err != nil {
		return fmt.Errorf("%s: %w", l.parts[i].Name, err)
	}
	rename := map[string]string{}
	for _, item := range m.Items {
		name, linkage, ok := named(item)
		if ok && linkage == Internal && !isEntry(item) && l.taken[name] && rename[name] == "" {
			rename[name] = l.free(name, i)
		}
	}
	if len(rename) > 0 {
		if m, err = Parse(renamed(l.parts[i].Text, rename)); err != nil {
			return fmt.Errorf("%s: %w", l.parts[i].Name, err)
		}
	}
	l.modules = append(l.modules, m)
	for _, item := range m.Items {
		if name, _, ok := named(item); ok {
			l.taken[name] = true
		}
	}
	return nil
}

// free returns a name that no part uses for anything, nor another name was changed to.
func (l *linking) free(name string, part int) string {
	if l.words == nil {
		l.words = map[string]bool{}
		for _, p := range l.parts {
			eachWord(p.Text, func(word string, _ bool) string {
				l.words[word] = true
				return word
			})
		}
	}
	for n := part + 1; ; n++ {
		candidate := name + "__" + strconv.Itoa(n)
		if !l.words[candidate] && !l.taken[candidate] {
			return candidate
		}
	}
}

func named(item Item) (name string, linkage Linkage, ok bool) {
	switch x := item.(type) {
	case *Variable:
		return x.Name, x.Linkage, true
	case *Function:
		return x.Name, x.Linkage, true
	case *Alias:
		return x.Name, Visible, true
	}
	return "", Internal, false
}

func isEntry(item Item) bool {
	f, ok := item.(*Function)
	return ok && f.Entry
}

// isDefinition reports whether the item is more than a declaration.
func isDefinition(item Item) bool {
	switch x := item.(type) {
	case *Variable:
		return x.Linkage != Extern
	case *Function:
		return x.Body != nil
	case *Alias:
		return true
	}
	return false
}

// define finds the one definition of each symbol.
func (l *linking) define() error {
	for i, m := range l.modules {
		for _, item := range m.Items {
			name, linkage, ok := named(item)
			if !ok || !isDefinition(item) {
				continue
			}
			d := definition{i, item, linkage == Weak || linkage == Common}
			old, found := l.defined[name]
			switch {
			case !found || old.weak && !d.weak:
				l.defined[name] = d
			case d.weak:
			default:
				return fmt.Errorf("%s is defined in %s and in %s", name, l.parts[old.part].Name, l.parts[i].Name)
			}
		}
	}
	return nil
}

// resolve looks for the symbols that no part defines.
func (l *linking) resolve() error {
	var missing []string
	for i, m := range l.modules {
		for _, item := range m.Items {
			name, _, ok := named(item)
			if !ok || isDefinition(item) || provided[name] {
				continue
			}
			if v, isVariable := item.(*Variable); isVariable && v.Space == SpaceShared {
				continue // the dynamic shared memory
			}
			if _, found := l.defined[name]; !found {
				missing = append(missing, fmt.Sprintf("%s, which %s uses", name, l.parts[i].Name))
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("nothing defines %s", strings.Join(missing, "; nor "))
	}
	return nil
}

// emit writes declarations first, so that everything is declared before its use:
// functions, variables, then what has code.
func (l *linking) emit() {
	var variables, code []Item
	declared := map[string]bool{}
	for i, m := range l.modules {
		l.head(m)
		for _, item := range m.Items {
			name, _, ok := named(item)
			if d := l.defined[name]; ok && d.item != item {
				if d.item == nil && !declared[name] { // the driver's, and dynamic shared memory
					declared[name] = true
					l.out.Items = append(l.out.Items, item)
				}
				continue
			}
			switch x := item.(type) {
			case *Function:
				if !x.Entry {
					prototype := *x
					prototype.Body, prototype.Directives = nil, nil
					l.out.Items = append(l.out.Items, &prototype)
				}
				places(x.Body, i)
				code = append(code, item)
			case *Variable:
				variables = append(variables, item)
			default:
				code = append(code, item)
			}
		}
		for n, file := range m.Files {
			l.out.Files[fileNumber(i, n)] = file
		}
	}
	l.out.Items = append(l.out.Items, byReference(variables)...)
	l.out.Items = append(l.out.Items, code...)
}

// head joins what modules begin with: the newest version and architecture.
func (l *linking) head(m *Module) {
	o := l.out
	if m.Major > o.Major || m.Major == o.Major && m.Minor > o.Minor {
		o.Major, o.Minor = m.Major, m.Minor
	}
	o.AddressSize = max(o.AddressSize, m.AddressSize)
	if len(m.Target) == 0 {
		return
	}
	if len(o.Target) == 0 {
		o.Target = slices.Clone(m.Target)
		return
	}
	if architecture(m.Target[0]) > architecture(o.Target[0]) {
		o.Target[0] = m.Target[0]
	}
	for _, option := range m.Target[1:] {
		if !slices.Contains(o.Target, option) {
			o.Target = append(o.Target, option)
		}
	}
}

// architecture is the number of sm_90a, and a bit more for its letter.
func architecture(target string) int {
	_, text, _ := strings.Cut(target, "_")
	digits := strings.TrimRight(text, "af")
	n, _ := strconv.Atoi(digits)
	return 2*n + min(1, len(text)-len(digits))
}

// fileNumber keeps the files of parts apart. Those of the first keep theirs.
func fileNumber(part, n int) int { return part*1000 + n }

// places gives .loc the numbers of the files in the result. The names of inlined
// functions are in sections for debuggers, which are left out.
func places(b *Block, part int) {
	if b == nil {
		return
	}
	for _, s := range b.Statements {
		switch x := s.(type) {
		case *Block:
			places(x, part)
		case *Loc:
			x.File = fileNumber(part, x.File)
			x.FunctionName, x.InlinedAt = "", nil
		}
	}
}

// byReference puts variables whose initialisers name others behind those.
func byReference(variables []Item) []Item {
	slices.SortStableFunc(variables, func(a, b Item) int { return references(a) - references(b) })
	return variables
}

func references(item Item) int {
	v := item.(*Variable)
	if v.Init != nil && hasSymbol(v.Init) {
		return 1
	}
	return 0
}

func hasSymbol(x *Init) bool {
	if x.Kind == InitSymbol {
		return true
	}
	for i := range x.Elems {
		if hasSymbol(&x.Elems[i]) {
			return true
		}
	}
	return false
}

// renamed replaces names in a text, but not where they are parts of directives.
func renamed(text string, names map[string]string) string {
	return eachWord(text, func(word string, isDirective bool) string {
		if to, found := names[word]; found && !isDirective {
			return to
		}
		return word
	})
}

// eachWord returns the text with each name and number replaced by what to says, but
// for those in strings and comments. A directive's follows a dot.
func eachWord(text string, to func(word string, isDirective bool) string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		end := i + 1
		switch c := text[i]; {
		case strings.HasPrefix(text[i:], "//"):
			end = until(text, i, "\n")
		case strings.HasPrefix(text[i:], "/*"):
			end = until(text, i+2, "*/")
		case c == '"':
			end = until(text, i+1, "\"")
		case isNameByte(c):
			for end < len(text) && isNameByte(text[end]) {
				end++
			}
			b.WriteString(to(text[i:end], i > 0 && text[i-1] == '.'))
			i = end
			continue
		}
		b.WriteString(text[i:end])
		i = end
	}
	return b.String()
}

func until(text string, from int, end string) int {
	if n := strings.Index(text[from:], end); n >= 0 {
		return from + n + len(end)
	}
	return len(text)
}

func isNameByte(c byte) bool {
	return c == '_' || c == '$' || c == '%' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
