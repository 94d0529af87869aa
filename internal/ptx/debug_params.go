// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package ptx

import (
	"debug/dwarf"
	"errors"
	"slices"
)

// Attributes that package dwarf has no name for: what linkage names were before
// DWARF 4, as NVRTC writes them.
const attrMIPSLinkageName dwarf.Attr = 0x2007

var errEndless = errors.New("debug information does not end")

// maxOrigins bounds how often one entry may refer to another for the rest of it.
const maxOrigins = 8

// description is what debug information says of the parameters of a function,
// with their sizes, or -1.
type description struct {
	params []DebugParam
	sizes  []int64
}

// descriptions are those of functions, by linkage name and by plain name. A
// function may have several, such as one of its inlined copies.
type descriptions struct {
	linkage, plain map[string][]description
}

// of returns the parameters of an entry, if all descriptions that fit agree.
func (d descriptions) of(symbol string, layout []Param) (found []DebugParam) {
	candidates := d.linkage[symbol]
	if candidates == nil {
		candidates = d.plain[symbol]
	}
	for _, c := range candidates {
		if !c.fits(layout) {
			continue
		}
		if found != nil && !slices.Equal(found, c.params) {
			return nil
		}
		found = c.params
	}
	return found
}

func (d description) fits(layout []Param) bool {
	if len(d.params) != len(layout) {
		return false
	}
	for i, size := range d.sizes {
		if size >= 0 && size != int64(layout[i].Size) {
			return false
		}
	}
	return true
}

// functionReader collects the descriptions of all functions.
type functionReader struct {
	data  *dwarf.Data
	types *typeSpeller
	found descriptions
}

// readDescriptions reads the DWARF of a module, as far as there is any.
func readDescriptions(sections map[string][]byte) descriptions {
	found := descriptions{linkage: map[string][]description{}, plain: map[string][]description{}}
	s := sections
	data, err := dwarf.New(s["debug_abbrev"], nil, nil, s["debug_info"], nil, nil, s["debug_ranges"], s["debug_str"])
	if err != nil {
		return descriptions{}
	}
	for _, name := range []string{"debug_addr", "debug_line_str", "debug_str_offsets", "debug_rnglists"} {
		if err := data.AddSection("."+name, s[name]); err != nil {
			return descriptions{}
		}
	}
	r := functionReader{data: data, types: newTypeSpeller(data), found: found}
	if r.read(len(s["debug_info"])) != nil {
		return descriptions{}
	}
	return found
}

// read visits all entries in order. It never skips to an entry's sibling: a
// section that is malformed might lead back. There are at most as many entries
// as bytes: package dwarf returns one without end for a number that is cut off.
func (r *functionReader) read(most int) error {
	var function *dwarf.Entry
	var params []*dwarf.Entry
	depth, inside := 0, 0
	entries := r.data.Reader()
	for range most + 1 {
		e, err := entries.Next()
		if e == nil || err != nil {
			return err
		}
		switch {
		case e.Tag == 0:
			if depth--; function != nil && depth == inside-1 {
				r.add(function, params)
				function, params = nil, nil
			}
		case e.Tag == dwarf.TagSubprogram && function == nil:
			if !e.Children {
				r.add(e, nil)
				break
			}
			function, inside = e, depth+1
		case e.Tag == dwarf.TagFormalParameter && function != nil && depth == inside:
			params = append(params, e)
		}
		if e.Children {
			depth++
		}
	}
	return errEndless
}

// add notes a function whose parameters are all known.
func (r *functionReader) add(function *dwarf.Entry, params []*dwarf.Entry) {
	linkage := r.text(function, dwarf.AttrLinkageName, attrMIPSLinkageName)
	plain := r.text(function, dwarf.AttrName)
	d := description{params: make([]DebugParam, len(params)), sizes: make([]int64, len(params))}
	for i, p := range params {
		off, ok := r.value(p, dwarf.AttrType).(dwarf.Offset)
		if !ok {
			return
		}
		t := r.types.spell(off, 0)
		if t.text == "" {
			return
		}
		d.params[i] = DebugParam{Name: identifier(r.text(p, dwarf.AttrName)), Type: t.text}
		d.sizes[i] = t.size
	}
	if linkage != "" {
		r.found.linkage[linkage] = append(r.found.linkage[linkage], d)
	}
	if plain != "" {
		r.found.plain[plain] = append(r.found.plain[plain], d)
	}
}

func (r *functionReader) text(e *dwarf.Entry, attrs ...dwarf.Attr) string {
	for _, attr := range attrs {
		if text, ok := r.value(e, attr).(string); ok {
			return text
		}
	}
	return ""
}

// value returns an attribute of an entry, or of the one that it refers to for
// what they have in common; nil if there is none.
func (r *functionReader) value(e *dwarf.Entry, attr dwarf.Attr) any {
	for range maxOrigins {
		if v := e.Val(attr); v != nil {
			return v
		}
		off, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			off, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		}
		if !ok {
			return nil
		}
		if e = entryAt(r.data, off); e == nil {
			return nil
		}
	}
	return nil
}

// entryAt returns the entry at an offset, or nil.
func entryAt(data *dwarf.Data, off dwarf.Offset) *dwarf.Entry {
	r := data.Reader()
	r.Seek(off)
	e, err := r.Next()
	if err != nil {
		return nil
	}
	return e
}
