// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
)

// call is a line of calls.txt, and the method of driver.API that it belongs to.
type call struct {
	name, version, suffix, need string
	border                      bool     // the border makes it in C
	byHand                      bool     // its method and trampoline are not generated
	types                       []string // of its parameters in C
	method                      *method  // nil: a part of another method
	slots                       []slot   // one for each parameter, unless by hand
}

// slot is a parameter in C, and what it has to do with the method's.
type slot struct {
	role  role
	ctype string // as in calls.txt
	base  string // of a pointer: what is behind it
	at    int    // which parameter of the method, or which result
}

type role int

const (
	value  role = iota // a number, a handle, a struct
	copied             // a struct: the address of a copy, so that cgo does not mind what is in it
	shared             // a struct that the call writes to, or that may be left out
	list               // elements of a slice
	length             // how many elements the list before it has
	text               // a string
	output             // a number or a handle that the call returns
	filled             // a struct or an array that the call returns
)

// orNull is behind the type of a parameter that may be left out.
const orNull = " or null"

// goTypes are the types of a method's parameters for those of C.
var goTypes = map[string][]string{
	"int": {"int32", "bool"}, "unsigned": {"uint32", "bool"}, "unsigned char": {"uint8"}, "unsigned short": {"uint16"},
	"size_t": {"uint64"}, "unsigned long long": {"uint64"}, "float": {"float32"}, "void *": {"uintptr"}, "CUuuid": {"[16]byte"},
}

// fits says whether a type of C and one of Go have the same values.
func fits(ctype, goType string) bool {
	return goType == "driver."+ctype || slices.Contains(goTypes[ctype], goType)
}

// readCalls reads calls.txt, and fits its lines to methods.
func readCalls(methods []method, a *abi) []call {
	byName := map[string]*method{}
	for i := range methods {
		byName[methods[i].call()] = &methods[i]
	}
	var calls []call
	for _, r := range readTable("calls.txt") {
		c, err := readCall(r)
		c.method = byName[c.name]
		delete(byName, c.name)
		if err == nil && !c.byHand {
			err = c.fit(a)
		}
		if err != nil {
			log.Fatalf("calls.txt: %s: %v", c.name, err)
		}
		calls = append(calls, c)
	}
	for name := range byName {
		if name != "cuModuleFunctionNames" { // made of three calls
			log.Fatalf("calls.txt: no line for %s of api.go", name)
		}
	}
	return calls
}

// readCall reads a line.
func readCall(r row) (call, error) {
	c := call{name: r.key}
	f := strings.Fields(r.text)
	if len(f) < 4 {
		return c, errors.New("want a version, a suffix, a need, and parameters")
	}
	c.version, c.suffix = f[0], strings.TrimPrefix(f[1], "-")
	c.need, c.border = strings.CutSuffix(f[2], ",border")
	if c.need != "required" && c.need != "optional" {
		return c, fmt.Errorf("want required or optional, got %s", c.need)
	}
	parameters, byHand := strings.CutPrefix(strings.Join(f[3:], " "), "by hand")
	c.byHand = byHand
	if parameters = strings.TrimPrefix(parameters, ": "); parameters != "" && parameters != "void" {
		c.types = strings.Split(parameters, ", ")
	}
	if c.border && byHand && c.types == nil {
		return c, errors.New("the border needs the parameters of a call by hand too")
	}
	return c, nil
}

// fit finds the slots.
func (c *call) fit(a *abi) error {
	m := c.method
	if m == nil {
		return errors.New("no such method in api.go")
	}
	in, out, lists := 0, 0, 0
	for _, t := range c.types {
		next := ""
		if in < len(m.types) {
			next = m.types[in]
		}
		t, nullable := strings.CutSuffix(t, orNull)
		s := slot{ctype: t, base: t, at: in}
		if base, ok := strings.CutSuffix(t, "*"); ok {
			s.base = strings.TrimSpace(strings.TrimPrefix(base, "const "))
		}
		switch {
		case lists > 0 && (t == "size_t" || t == "unsigned"):
			s.role, s.at, lists = length, in-1, 0
		case s.takes(next, a):
			if nullable && s.role != copied {
				return fmt.Errorf("%s%s: only a struct that is read by its address may be left out", t, orNull)
			}
			if nullable { // nothing can be copied where there is nothing
				s.role = shared
			}
			in++
			if s.role == list {
				lists++
			}
		case s.base != t && !strings.HasPrefix(t, "const ") && out < len(m.results)-1 && fits(s.base, m.resultTypes[out]):
			s.role, s.at = output, out
			if a.isStruct(s.base) || m.resultTypes[out][0] == '[' {
				s.role = filled
			}
			out++
		default:
			return fmt.Errorf("%s fits neither the next parameter of the method (%s) nor result %d", t, next, out)
		}
		c.slots = append(c.slots, s)
	}
	if in < len(m.params) || out < len(m.results)-1 || lists > 0 {
		return errors.New("the method has more parameters or results")
	}
	return nil
}

// takes says whether a method's parameter goes into s, and sets how.
func (s *slot) takes(goType string, a *abi) bool {
	element, slice := strings.CutPrefix(goType, "[]")
	pointer := s.base != s.ctype
	switch {
	case slice && pointer && (s.base == "void" || fits(s.base, element)):
		s.role = list
	case goType == "string" && s.ctype == "const char *":
		s.role = text
	case pointer && strings.HasPrefix(s.ctype, "const ") && goType == "*driver."+s.base,
		pointer && a.isStruct(s.base) && goType == "driver."+s.base:
		s.role = copied
	case pointer && goType == "*driver."+s.base:
		s.role = shared
	case fits(s.ctype, goType):
		s.role = value
	default:
		return false
	}
	return true
}

// with returns the slots of a role.
func (c *call) with(r role) []slot {
	var found []slot
	for _, s := range c.slots {
		if s.role == r {
			found = append(found, s)
		}
	}
	return found
}
